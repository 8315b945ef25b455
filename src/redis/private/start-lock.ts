import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isAlive } from '../../child-process.ts';
import { ExpungeError } from '../../errors.ts';
import { systemCode } from '../../system-errors.ts';
import { waitUntil } from '../../wait.ts';

const staleMs = 300_000; // a lock this old is void: its pid may belong to another process
const halfWrittenMs = 2_000; // a file is empty for an instant while its owner writes into it
const released = 'over';

/**
 * Runs `work` under the lock of this folder, which one process has at a time. Waits for the lock for at most `waitMs`, then throws UNREACHABLE.
 * Throws what `work` throws.
 *
 * A lock is a file `lock.<n>` with the pid of its owner, or `over`. Numbers only grow and the highest file is never removed. The lock of a dead owner
 * is skipped by taking n + 1, and no process can remove a lock by mistake.
 */
export async function withStartLock<T>(folder: string, waitMs: number, work: () => Promise<T>): Promise<T> {
  let lock: string | null = null;
  const taken = await waitUntil(() => {
    lock = takeLock(folder);
    return lock !== null;
  }, waitMs);
  if (!taken)
    throw new ExpungeError('UNREACHABLE', `another expunge has been starting Redis in ${folder} for too long`);
  try {
    return await work();
  } finally {
    writeFileSync(lock!, released);
  }
}

function takeLock(folder: string): string | null {
  const last = highest(folder);
  if (last > 0 && isHeld(lockFile(folder, last))) return null;
  const mine = lockFile(folder, last + 1);
  if (!createOnce(mine)) return null;
  // A process that listed the files before older ones were removed may create a low number again, so only the highest number has the lock.
  if (highest(folder) !== last + 1) {
    rmSync(mine, { force: true });
    return null;
  }
  if (last > 0) removeBelow(folder, last + 1);
  return mine;
}

/** Creates the file with the pid of this process; false if it exists. */
function createOnce(file: string): boolean {
  try {
    writeFileSync(file, String(process.pid), { flag: 'wx' });
    return true;
  } catch (error) {
    if (systemCode(error) === 'EEXIST') return false;
    throw error;
  }
}

function isHeld(file: string): boolean {
  try {
    const owner = readFileSync(file, 'utf8');
    const ageMs = Date.now() - statSync(file).mtimeMs;
    if (owner === '') return ageMs < halfWrittenMs;
    return owner !== released && isAlive(Number(owner)) && ageMs < staleMs;
  } catch {
    return true; // it was removed in the meantime: try again
  }
}

function removeBelow(folder: string, lock: number): void {
  for (const n of lockNumbers(folder)) if (n < lock) rmSync(lockFile(folder, n), { force: true });
}

function highest(folder: string): number {
  return Math.max(0, ...lockNumbers(folder));
}

function lockNumbers(folder: string): number[] {
  return readdirSync(folder)
    .flatMap((name) => /^lock\.(\d+)$/.exec(name)?.[1] ?? [])
    .map(Number);
}

function lockFile(folder: string, lock: number): string {
  return join(folder, `lock.${lock}`);
}
