import { mkdir, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { isLeftBehind, ownName } from '../left-behind.ts';

/** A new folder for one spool below the state directory, for us alone; its name tells whose it is. */
export async function createSpoolFolder(stateDir: string): Promise<string> {
  const folder = join(stateDir, 'spool', ownName());
  await mkdir(folder, { recursive: true, mode: 0o700 });
  return folder;
}

/** Removes a spool. Repeating it is harmless. */
export async function removeSpool(folder: string): Promise<void> {
  await rm(folder, { recursive: true, force: true });
}

/** Removes the spools of processes that are gone, and returns how many. Safe while other processes spool. */
export async function removeStaleSpools(stateDir: string): Promise<number> {
  const root = join(stateDir, 'spool');
  const names = await readdir(root).catch(() => []);
  const stale: string[] = [];
  for (const name of names) if (await isLeftBehind(join(root, name), name)) stale.push(name);
  await Promise.all(stale.map((name) => removeSpool(join(root, name))));
  return stale.length;
}
