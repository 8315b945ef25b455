import { randomBytes } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable, Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { ReadableStream } from 'node:stream/web';
import { makeStateDir } from '../input/with-list.ts';
import { systemCode } from '../system-errors.ts';
import { Problem } from './problem.ts';

/** What a server keeps of a list that was sent to it, until it is applied or a day has passed. */
export type KeptPlan = {
  id: string;
  by: string;
  fp: string;
  at: number; // ms since 1970
  list: string; // the file of the list
  settings: Record<string, string | undefined>; // how it is read and deleted, as texts for flags
  shown: Record<string, unknown>; // the answer that described it
};

const keptMs = 86_400_000;
const plansAtMost = 200;
const listBytesAtMost = 16 * 1_024 ** 3;

/** Lists and plans below the state folder, a folder for each. Every server has its own. */
export class PlanStore {
  readonly #stateDir: string;
  readonly #folder: string;

  constructor(stateDir: string) {
    this.#stateDir = stateDir;
    this.#folder = join(stateDir, 'uploads');
  }

  /** A new folder, and the place for a list in it. Removes what is too old, or too much. */
  async open(name: string): Promise<{ id: string; list: string }> {
    await makeStateDir(this.#stateDir);
    await this.#removeOld();
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

  /** Throws not_found for a plan that was applied, removed or forgotten. */
  async find(id: string): Promise<KeptPlan> {
    const text = /^[0-9a-f]{18}$/.test(id) ? await readFile(this.pathOf(id, 'kept.json'), 'utf8').catch(() => '') : '';
    const plan = text === '' ? null : (JSON.parse(text) as KeptPlan);
    if (plan !== null && Date.now() < plan.at + keptMs) return plan;
    throw new Problem(
      'not_found',
      `this server has no plan "${id}"`,
      'it is kept for a day, or until it is applied; send the list again',
    );
  }

  /** Repeating it is harmless. */
  async remove(id: string): Promise<void> {
    await rm(this.pathOf(id), { recursive: true, force: true });
  }

  async #removeOld(): Promise<void> {
    const ids = await readdir(this.#folder).catch(() => []);
    const ages = await Promise.all(
      ids.map(async (id) => ({ id, at: (await stat(this.pathOf(id)).catch(() => null))?.mtimeMs ?? 0 })),
    );
    const newestFirst = ages.sort((a, b) => b.at - a.at);
    const old = newestFirst.filter(({ at }, i) => at < Date.now() - keptMs || i >= plansAtMost - 1);
    for (const { id } of old) await this.remove(id);
  }
}

/** When a plan of this moment is forgotten; ms since 1970. */
export function forgottenAt(at: number): number {
  return at + keptMs;
}

/** Writes a body to a file as it comes: a few blocks are in memory, however long it is. Throws `too_large` or `no_space`. */
export async function writeBody(body: ReadableStream | null, path: string, most = listBytesAtMost): Promise<void> {
  let bytes = 0;
  const bounded = new Transform({
    transform(chunk: Uint8Array, _encoding, done) {
      bytes += chunk.length;
      done(bytes > most ? new Problem('too_large', `expected a list of at most ${most} bytes`) : null, chunk);
    },
  });
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
        'the list does not fit',
        'make room in the state folder of the server, or send a part of it',
      );
    throw error;
  }
}
