import { readdir, rm } from 'node:fs/promises';
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
    if (await isStalePath(folder, name.slice(start.length))) await remove(folder);
  }
  const folder = join(tmpdir(), `${start}${processName()}`);
  try {
    return await body(folder, () => remove(folder));
  } finally {
    await remove(folder);
  }
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
