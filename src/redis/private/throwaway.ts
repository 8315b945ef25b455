import { lstat, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { isStalePath, processName } from '../../stale-path.ts';
import { readContainer, removeVolume } from './container.ts';
import { privatePlace } from './place.ts';
import { stopPrivateRedis } from './stop.ts';

const start = 'expunge-rehearsal-';

/**
 * Calls `body` with the path of a new state folder, and removes the folder with its private Redis and its data. Also removes the
 * folders that killed processes left. `body` also gets a function that removes the folder, for a process that ends at once. Throws what `body` throws.
 */
export async function withThrowawayState<T>(
  body: (stateDir: string, remove: () => Promise<void>) => Promise<T>,
): Promise<T> {
  const left = (await readdir(tmpdir())).filter((name) => name.startsWith(start));
  for (const name of left) {
    const folder = join(tmpdir(), name);
    if ((await isOwn(folder)) && (await isStalePath(folder, name.slice(start.length)))) await remove(folder);
  }
  const folder = join(tmpdir(), `${start}${processName()}`);
  try {
    return await body(folder, () => remove(folder));
  } finally {
    await remove(folder);
  }
}

/**
 * Whether this user made the folder, and no other could write to it. Any user can make one of this name in the folder for temporary files, and its
 * files name a program to run and a folder to remove.
 */
async function isOwn(folder: string): Promise<boolean> {
  const found = await lstat(folder).catch(() => null);
  return found?.isDirectory() === true && found.uid === process.getuid?.() && (found.mode & 0o077) === 0;
}

/** Never throws: the next rehearsal removes the rest. */
async function remove(stateDir: string): Promise<void> {
  const place = privatePlace(stateDir);
  const container = readContainer(place);
  try {
    await stopPrivateRedis(stateDir);
    if (container !== null) await removeVolume(container, process.env);
    if (place.socketLink !== null) await rm(dirname(place.socket), { recursive: true, force: true });
    await rm(stateDir, { recursive: true, force: true });
  } catch {}
}
