import { randomBytes } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable, Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { ReadableStream } from 'node:stream/web';
import { count, isoTime, plural } from '../format.ts';
import { makeStateDir } from '../input/with-list.ts';
import type { Log } from '../logger.ts';
import { maxUploadBytes } from '../operations/read-list.ts';
import { systemCode } from '../system-errors.ts';
import { type Part, repeat } from '../worker/parts.ts';
import { Problem } from './problem.ts';

/** What a server keeps of a list that was sent to it, until the plan is applied or a day has passed. */
export type KeptPlan = {
  id: string;
  by: string;
  fp: string;
  at: number; // ms since 1970
  list: string; // the file of the list
  rejects?: string | null; // the file of its rejected rows; an older version kept none
  settings: Record<string, string | undefined>; // how to read and delete the list, as texts for flags
  shown: Record<string, unknown>; // the answer that described it
};

const keptMs = 86_400_000;
const maxPlans = 1_000;
const maxTotalBytes = 32e9;
const lookEveryBytes = 16e6; // an upload may exceed the limits by this much
const idleMs = 60_000;

/** Lists and plans below the state folder, one folder for each. Servers of one machine may share it. */
export class PlanStore {
  readonly #stateDir: string;
  readonly #folder: string;

  constructor(stateDir: string) {
    this.#stateDir = stateDir;
    this.#folder = join(stateDir, 'uploads');
  }

  /**
   * Makes a folder, and a path in it for a list of this many bytes; 0 = not known. Throws `too_large` for the list, or `no_space` if all lists
   * together are too large.
   */
  async open(name: string, bytes: number): Promise<{ id: string; list: string }> {
    if (bytes > maxUploadBytes) throw tooLarge();
    await makeStateDir(this.#stateDir);
    await this.removeOld();
    await this.#refuseFull({ lists: 1, bytes });
    const id = randomBytes(9).toString('hex');
    await mkdir(this.pathOf(id), { recursive: true, mode: 0o700 });
    return { id, list: this.pathOf(id, name) };
  }

  pathOf(id: string, ...names: string[]): string {
    return join(this.#folder, id, ...names);
  }

  async keep(plan: KeptPlan): Promise<void> {
    const draft = this.pathOf(plan.id, 'kept.part');
    await writeFile(draft, JSON.stringify(plan), { mode: 0o600 });
    await rename(draft, this.pathOf(plan.id, 'kept.json'));
  }

  /** Finds a plan. Throws not_found if it was applied, removed or forgotten. */
  async find(id: string): Promise<KeptPlan> {
    const text = /^[0-9a-f]{18}$/.test(id) ? await readFile(this.pathOf(id, 'kept.json'), 'utf8').catch(() => '') : '';
    const plan = text === '' ? null : (JSON.parse(text) as KeptPlan);
    if (plan !== null && Date.now() < plan.at + keptMs) return plan;
    throw noPlan(id);
  }

  /** Removes a plan. Repeating it is harmless. */
  async remove(id: string): Promise<void> {
    await rm(this.pathOf(id), { recursive: true, force: true });
  }

  /** Removes plans older than a day, including those of a server that died. */
  async removeOld(): Promise<void> {
    for (const { id, at } of await this.#all()) if (at < Date.now() - keptMs) await this.remove(id);
  }

  /**
   * Writes a body to a file as it comes: a few blocks are in memory, however long it is. Throws `too_large`, `no_space`, and `slow` if nothing came
   * for a minute.
   */
  async write(body: ReadableStream | null, path: string): Promise<void> {
    let [bytes, lookAt] = [0, lookEveryBytes];
    const bounded = new Transform({
      transform: (chunk: Uint8Array, _encoding, done) => {
        idle.refresh();
        bytes += chunk.length;
        if (bytes > maxUploadBytes) return done(tooLarge());
        if (bytes < lookAt) return done(null, chunk);
        lookAt = bytes + lookEveryBytes;
        this.#refuseFull({ lists: 0, bytes: 0 }).then(() => done(null, chunk), done);
      },
    });
    const late = new Problem('slow', `expected more of the list within ${idleMs / 1_000} s`);
    const idle = setTimeout(() => bounded.destroy(late), idleMs).unref();
    try {
      await pipeline(
        body === null ? Readable.from([]) : Readable.fromWeb(body),
        bounded,
        createWriteStream(path, { flags: 'wx', mode: 0o600 }),
      );
    } catch (error) {
      if (['ENOSPC', 'EDQUOT', 'EFBIG'].includes(systemCode(error)))
        throw new Problem(
          'no_space',
          'the list does not fit on the disk',
          'make room in the state folder of the server, or send a part of it',
        );
      throw error;
    } finally {
      clearTimeout(idle);
    }
  }

  async #refuseFull(more: { lists: number; bytes: number }): Promise<void> {
    const all = await this.#all();
    const bytes = all.reduce((sum, plan) => sum + plan.bytes, 0);
    if (all.length + more.lists <= maxPlans && bytes + more.bytes <= maxTotalBytes) return;
    const oldest = Math.min(...all.map(({ at }) => at));
    throw new Problem(
      'no_space',
      `this server keeps ${plural(all.length, 'lists')} of ${gigabytes(bytes)}, and at most ${count(maxPlans)} of ${gigabytes(maxTotalBytes)}`,
      `apply a plan, or remove one: DELETE /api/v1/plans/PLAN; the oldest goes by itself at ${isoTime(forgottenAt(oldest))}`,
    );
  }

  /** The plans that exist now. Other processes may remove some in the meantime. */
  async #all(): Promise<{ id: string; at: number; bytes: number }[]> {
    const ids = await readdir(this.#folder).catch(() => []);
    const found = await Promise.all(ids.map(async (id) => ({ id, ...(await this.#sizeOf(id)) })));
    return found.filter(({ at }) => at > 0);
  }

  async #sizeOf(id: string): Promise<{ at: number; bytes: number }> {
    const names = await readdir(this.pathOf(id)).catch(() => []);
    const files = await Promise.all(names.map((name) => stat(this.pathOf(id, name)).catch(() => null)));
    const at = (await stat(this.pathOf(id)).catch(() => null))?.mtimeMs ?? 0;
    return { at, bytes: files.reduce((sum, file) => sum + (file?.size ?? 0), 0) };
  }
}

const removeEveryMs = 10 * 60_000;

/** Removes old lists when the process starts, and regularly after that. */
export function oldListsPart(stateDir: string, log: Log): Part {
  return repeat('uploads', removeEveryMs, () => new PlanStore(stateDir).removeOld(), log);
}

/** The problem for a plan that does not exist. */
export function noPlan(id: string): Problem {
  return new Problem(
    'not_found',
    `this server has no plan "${id}"`,
    'it is kept for a day, or until it is applied; send the list again',
  );
}

function tooLarge(): Problem {
  return new Problem('too_large', `expected a list of at most ${gigabytes(maxUploadBytes)}`, 'send it in parts');
}

function gigabytes(bytes: number): string {
  return `${(bytes / 1e9).toFixed(1)} GB`;
}

/** When a plan of this time is forgotten, in ms since 1970. */
export function forgottenAt(at: number): number {
  return at + keptMs;
}
