import { randomBytes } from 'node:crypto';
import { stat } from 'node:fs/promises';
import { hostname } from 'node:os';
import { isAlive } from './child-process.ts';

const weekMs = 7 * 86_400_000;

/** A new name for temporary files of this process; `isStalePath` reads the owner from it. */
export function processName(): string {
  return `${hostname()}-${process.pid}-${randomBytes(6).toString('hex')}`;
}

/** Whether the process that created this path has ended, so that the path can be removed. False for names of another form. */
export async function isStalePath(path: string, name: string): Promise<boolean> {
  const [, host, pid] = /^(.*)-(\d+)-[0-9a-f]+$/.exec(name) ?? [];
  const facts = await stat(path).catch(() => null);
  if (!host || !facts) return false;
  // Containers can share a folder but not their process ids: a path of another host is stale after a week.
  if (host !== hostname()) return Date.now() - facts.mtimeMs > weekMs;
  // A restarted container reuses process ids, so an older path with our id belongs to an earlier process.
  if (Number(pid) === process.pid) return facts.mtimeMs < Date.now() - process.uptime() * 1000;
  return !isAlive(Number(pid));
}
