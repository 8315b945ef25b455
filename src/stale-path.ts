import { randomBytes } from 'node:crypto';
import { stat } from 'node:fs/promises';
import { hostname } from 'node:os';
import { systemCode } from './errors.ts';

const weekMs = 7 * 86_400_000;

/** A name for what this process makes for a while, from which others tell whose it is. */
export function processName(): string {
  return `${hostname()}-${process.pid}-${randomBytes(6).toString('hex')}`;
}

/** Whether the process that made this path under such a name is gone, so that nobody needs it any more. False for any other name. */
export async function isStalePath(path: string, name: string): Promise<boolean> {
  const [, host, pid] = /^(.*)-(\d+)-[0-9a-f]+$/.exec(name) ?? [];
  const facts = await stat(path).catch(() => null);
  if (!host || !facts) return false;
  // Containers can share a folder but not their process ids: what another host left has to be old.
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
