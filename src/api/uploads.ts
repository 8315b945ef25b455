import { randomBytes } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { mkdir, readdir, rm, stat } from 'node:fs/promises';
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

const keptMs = 86_400_000;
const maxLists = 1_000;
const maxTotalBytes = 32e9;
const lookEveryBytes = 16e6; // an upload may exceed the limits by this much
const idleMs = 60_000;

/** Lists that are being sent, below the state folder, one folder for each: until their plans are in Redis. Servers of one machine may share it. */
export class Uploads {
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

  /** Removes a list. Repeating it is harmless. */
  async remove(id: string): Promise<void> {
    await rm(this.pathOf(id), { recursive: true, force: true });
  }

  /** Removes lists older than a day, of servers that died. */
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
    const bytes = all.reduce((sum, list) => sum + list.bytes, 0);
    if (all.length + more.lists <= maxLists && bytes + more.bytes <= maxTotalBytes) return;
    const oldest = Math.min(...all.map(({ at }) => at));
    throw new Problem(
      'no_space',
      `this server keeps ${plural(all.length, 'lists')} of ${gigabytes(bytes)}, and at most ${count(maxLists)} of ${gigabytes(maxTotalBytes)}`,
      `send it again when they have been read; what a server left goes by itself at ${isoTime(oldest + keptMs)}`,
    );
  }

  /** The lists that exist now. Other processes may remove some in the meantime. */
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
  return repeat('uploads', removeEveryMs, () => new Uploads(stateDir).removeOld(), log);
}

function tooLarge(): Problem {
  return new Problem('too_large', `expected a list of at most ${gigabytes(maxUploadBytes)}`, 'send it in parts');
}

function gigabytes(bytes: number): string {
  return `${(bytes / 1e9).toFixed(1)} GB`;
}
