import { randomBytes } from 'node:crypto';
import { mkdir, readdir, rm, stat } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { systemCode } from '../errors.ts';

const weekMs = 7 * 86_400_000;

/** A new folder for one spool below the state directory, for us alone; its name tells whose it is. */
export async function createSpoolFolder(stateDir: string): Promise<string> {
  const folder = join(stateDir, 'spool', `${hostname()}-${process.pid}-${randomBytes(6).toString('hex')}`);
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
  for (const name of names) if (await isStale(root, name)) stale.push(name);
  await Promise.all(stale.map((name) => removeSpool(join(root, name))));
  return stale.length;
}

async function isStale(root: string, name: string): Promise<boolean> {
  const [, host, pid] = /^(.*)-(\d+)-[0-9a-f]+$/.exec(name) ?? [];
  const facts = await stat(join(root, name)).catch(() => null);
  if (!host || !facts) return false;
  // Containers can share the folder but not their process ids: what another host left has to be old.
  if (host !== hostname()) return Date.now() - facts.mtimeMs > weekMs;
  // In a container that starts again, the process before us may have had our own id.
  if (Number(pid) === process.pid) return facts.mtimeMs < Date.now() - process.uptime() * 1000;
  return !isAlive(Number(pid));
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return systemCode(error) !== 'ESRCH';
  }
}
