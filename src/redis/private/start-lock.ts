import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ExpungeError, systemCode } from '../../errors.ts';
import { waitUntil } from '../await-redis.ts';
import { isAlive } from './server-process.ts';

const staleMs = 300_000; // a holder this old lost its turn: its pid now names something else
const halfWrittenMs = 2_000; // a file is empty for an instant while its owner writes into it
const released = 'over';

/**
 * Runs `work` while no other process does so for this folder; waits for its turn at most `waitMs`, then throws
 * UNREACHABLE.
 *
 * A turn is a file `lock.<n>` that holds the pid of its owner, or `over`. Numbers only grow and the highest
 * file is never removed, so a dead owner is passed over by taking n + 1, and nobody can remove a lock by mistake.
 */
export async function withStartLock<T>(folder: string, waitMs: number, work: () => Promise<T>): Promise<T> {
  let turn: string | null = null;
  const taken = await waitUntil(() => {
    turn = takeTurn(folder);
    return turn !== null;
  }, waitMs);
  if (!taken)
    throw new ExpungeError('UNREACHABLE', `another expunge has been starting Redis in ${folder} for too long`);
  try {
    return await work();
  } finally {
    writeFileSync(turn!, released);
  }
}

function takeTurn(folder: string): string | null {
  const last = highest(folder);
  if (last > 0 && isHeld(lockFile(folder, last))) return null;
  const mine = lockFile(folder, last + 1);
  if (!createOnce(mine)) return null;
  // Whoever looked before an older turn was cleared away may create a low number again: the highest one has the turn.
  if (highest(folder) !== last + 1) {
    rmSync(mine, { force: true });
    return null;
  }
  if (last > 0) clearBelow(folder, last + 1);
  return mine;
}

/** Creates the file with our pid in it; false where it exists. */
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
    return true; // it was cleared away this moment: look again
  }
}

function clearBelow(folder: string, turn: number): void {
  for (const n of turns(folder)) if (n < turn) rmSync(lockFile(folder, n), { force: true });
}

function highest(folder: string): number {
  return Math.max(0, ...turns(folder));
}

function turns(folder: string): number[] {
  return readdirSync(folder)
    .flatMap((name) => /^lock\.(\d+)$/.exec(name)?.[1] ?? [])
    .map(Number);
}

function lockFile(folder: string, turn: number): string {
  return join(folder, `lock.${turn}`);
}
