import { withTimeout } from '../../wait.ts';

type SingleFlightOptions = {
  /** The time for which an answer is reused, in ms. */
  freshMs: number;
  /** The longest wait of a caller, in ms. */
  timeoutMs: number;
  /** Monotonic ms. */
  clock: () => number;
};

/**
 * Bounds the cost of a call that may be slow: each caller gets the answer, or null if the call failed or took too long. At most one call runs at a
 * time, however long it takes, so that calls don't pile up while one hangs. Never rejects.
 */
export function singleFlight<T>(
  call: () => Promise<T>,
  { freshMs, timeoutMs, clock }: SingleFlightOptions,
): () => Promise<T | null> {
  let known: { answer: T; at: number } | null = null;
  let running: Promise<T | null> | null = null;
  const callNow = async () => {
    try {
      const answer = await call();
      known = { answer, at: clock() };
      return answer;
    } catch {
      return null;
    } finally {
      running = null;
    }
  };
  return () => {
    if (known !== null && clock() - known.at < freshMs) return Promise.resolve(known.answer);
    running ??= callNow();
    return withTimeout(timeoutMs, running);
  };
}
