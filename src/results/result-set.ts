import { mkdir, open, readdir, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { nameEnd } from '../ledger/results.ts';
import { type Run, readRun } from '../ledger/run.ts';
import type { RedisClient } from '../redis/client.ts';
import { resultFiles } from '../report/result-files.ts';
import { isStalePath, processName } from '../stale-path.ts';
import { systemCode } from '../system-errors.ts';

/** The files of a run's results, complete on the disk of this machine. */
export type ResultSet = { run: string; folder: string; names: readonly string[] };

const names = Object.keys(resultFiles);

/**
 * Writes the results of a run into a new hidden folder in `parent`, readable by its owner only, and returns it once the disk has them. Removes the
 * remains of other deliveries of the run: the caller holds the lease of the run, so no other process will finish them. Throws errors of the file
 * system and of Redis, 'stopped' when `signal` is aborted, and an error if the files might not belong together; then nothing remains.
 */
export async function writeSet(redis: RedisClient, run: Run, parent: string, signal: AbortSignal): Promise<ResultSet> {
  await mkdir(parent, { recursive: true, mode: 0o700 });
  await removeDrafts(parent, run.id);
  const set = { run: run.id, folder: join(parent, `${draftStart(run.id)}${processName()}.part`), names };
  await mkdir(set.folder, { mode: 0o700 });
  try {
    for (const name of names) await writeFile(join(set.folder, name), resultFiles[name]!(redis, run), signal);
    await syncFolder(set.folder);
    if (await hasChanged(redis, run)) throw new Error('the run has changed in the meantime');
    return set;
  } catch (error) {
    await removeSet(set);
    throw error;
  }
}

/** Whether the run has changed. A halted run can be resumed while its files are written, and late answers of requests in flight can come in. */
async function hasChanged(redis: RedisClient, run: Run): Promise<boolean> {
  const now = await readRun(redis, run.id);
  return now === null || nameEnd(now) !== nameEnd(run) || !isDeepStrictEqual(now.counts, run.counts);
}

/** Removes the folder of a set with its contents. Never throws, because it may follow another error. */
export async function removeSet({ folder }: ResultSet): Promise<void> {
  await rm(folder, { recursive: true, force: true }).catch(() => {});
}

/**
 * Moves a set to its place next to it, `<parent>/<run>`. The whole folder appears at once. If the place is taken by a set of an earlier halt, or of a
 * delivery that was not recorded, its files are replaced one by one; until the end it has no summary. Repeating it with an equal set changes nothing.
 * The caller removes the rest of the set. Throws errors of the file system.
 */
export async function moveSet(set: ResultSet): Promise<string> {
  const parent = dirname(set.folder);
  const place = join(parent, set.run);
  try {
    await rename(set.folder, place);
  } catch (error) {
    if (!['ENOTEMPTY', 'EEXIST'].includes(systemCode(error))) throw error;
    await replaceFiles(set, place);
  }
  await syncFolder(parent);
  return place;
}

/** Replaces files one by one. Each step needs the draft: if another process has removed it, the set of that process stays unchanged. */
async function replaceFiles(set: ResultSet, place: string): Promise<void> {
  await moveIfThere(join(place, set.names.at(-1)!), join(set.folder, 'replaced'));
  for (const name of set.names) await rename(join(set.folder, name), join(place, name));
  await syncFolder(place);
}

async function moveIfThere(from: string, to: string): Promise<void> {
  await rename(from, to).catch((error) => {
    if (systemCode(error) !== 'ENOENT') throw error;
  });
}

async function writeFile(path: string, text: AsyncIterable<string>, signal: AbortSignal): Promise<void> {
  const file = await open(path, 'wx', 0o600);
  try {
    for await (const piece of text) {
      if (signal.aborted) throw new Error('stopped');
      await file.appendFile(piece);
    }
    await file.sync();
  } finally {
    await file.close();
  }
}

/** A name survives a power cut only once its folder is on the disk. */
async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

function draftStart(run: string): string {
  return `.${run}.`;
}

/** Removes the drafts of this run, and drafts of other runs whose process was killed on this machine: another one may have delivered those runs. */
async function removeDrafts(parent: string, run: string): Promise<void> {
  const drafts = (await readdir(parent)).filter((name) => name.startsWith('.') && name.endsWith('.part'));
  for (const name of drafts) {
    const path = join(parent, name);
    const isOurs = name.startsWith(draftStart(run));
    if (isOurs || (await isStalePath(path, ownerOf(name)))) await rm(path, { recursive: true, force: true });
  }
}

/** The process in the name of a draft; the id of a run has no dot. */
function ownerOf(name: string): string {
  return name.slice(name.indexOf('.', 1) + 1, -'.part'.length);
}
