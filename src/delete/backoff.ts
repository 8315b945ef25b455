const baseMs = 200;
const capMs = 10_000;

/**
 * The wait before quick try number `attempt` + 1, with full jitter: anything from 0 to 200 ms · 2^attempt, at most 10 s.
 * `random` is from 0 to 1.
 */
export function backoffMs(attempt: number, random: number): number {
  return random * Math.min(capMs, baseMs * 2 ** attempt);
}

/** Quick tries in an id's first pass. */
export const quickTries = 3;

/** Attempts an id has at most: the quick ones and one in each later pass. */
export function attemptsAtMost(retryDelaysMs: readonly number[]): number {
  return quickTries + retryDelaysMs.length;
}

/** How long after its last pass an id with this many attempts is due again; 0 if it had none yet. */
export function parkedForMs(attempts: number, retryDelaysMs: readonly number[]): number {
  if (attempts === 0) return 0;
  return retryDelaysMs[Math.max(0, attempts - quickTries)] ?? 0;
}

/** How long an id waits that was told to, after being sent or handed back so many times: no attempt tells how often it was. */
export function waitsForMs(times: number, retryDelaysMs: readonly number[]): number {
  return retryDelaysMs[Math.min(times, retryDelaysMs.length) - 1] ?? 0;
}
