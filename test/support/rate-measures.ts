import type { Sandbox } from '../../src/sandbox/server.ts';

/** What a sandbox put on record: when each request arrived, and what it was answered (0 = nothing yet). */
export type Arrivals = Sandbox['arrivals'];

/** A stretch of time, in ms of `performance.now()`. */
export type Span = { fromMs: number; toMs: number };

/** What a server took and refused in a stretch of time. */
export type Taken = { requests: number; accepted: number; refused: number; seconds: number };

const tickMs = 5;

/**
 * Notes every few milliseconds that this process is awake. A server that stood still for a moment reads all that arrived
 * meanwhile at once: between two ticks nobody knows when a request really came.
 */
export function watchTicks(): { readonly ticks: readonly number[]; stop(): void } {
  const ticks = [performance.now()];
  const timer = setInterval(() => ticks.push(performance.now()), tickMs);
  return { ticks, stop: () => clearInterval(timer) };
}

/** The most requests that surely arrived within one second (or another window): each may have come as early as the tick before it was read. */
export function busiest(atMs: readonly number[], ticks: readonly number[], windowMs = 1_000): number {
  const earliest = earliestOf(atMs, ticks);
  let [most, from] = [0, 0];
  for (const [i, at] of atMs.entries()) {
    while (at - earliest[from]! >= windowMs) from++;
    most = Math.max(most, i - from + 1);
  }
  return most;
}

function earliestOf(atMs: readonly number[], ticks: readonly number[]): number[] {
  let tick = -1;
  return atMs.map((at) => {
    while (tick + 1 < ticks.length && ticks[tick + 1]! <= at) tick++;
    return tick < 0 ? at : ticks[tick]!;
  });
}

/** What happened in a stretch of time. */
export function takenIn({ atMs, status }: Arrivals, { fromMs, toMs }: Span): Taken {
  const taken: Taken = { requests: 0, accepted: 0, refused: 0, seconds: (toMs - fromMs) / 1_000 };
  for (let i = firstFrom(atMs, fromMs); i < atMs.length && atMs[i]! < toMs; i++) {
    taken.requests++;
    if (status[i] === 429) taken.refused++;
    else if (status[i] === 204) taken.accepted++;
  }
  return taken;
}

/** Requests per second. */
export function perSecondIn(arrivals: Arrivals, span: Span): number {
  const { requests, seconds } = takenIn(arrivals, span);
  return requests / seconds;
}

/** Which part of a limit was used, and which part of the answers was 429. */
export function sharesOf({ requests, accepted, refused, seconds }: Taken, limit: number) {
  return { used: accepted / (limit * seconds), refused: refused / Math.max(1, requests) };
}

/**
 * Seconds from a change of the limit until it is followed: the first moment from which, over two seconds, 95 % of the new limit are used
 * and at most 2 % refused. Null if that never came before `untilMs`.
 */
export function secondsToFollow(arrivals: Arrivals, limit: number, { fromMs, toMs }: Span): number | null {
  for (let at = fromMs; at + followMs <= toMs; at += 100) {
    const { used, refused } = sharesOf(takenIn(arrivals, { fromMs: at, toMs: at + followMs }), limit);
    if (used >= 0.95 && refused <= 0.02) return (at - fromMs) / 1_000;
  }
  return null;
}

const followMs = 2_000;

/** Where the first arrival not before that moment stands. */
function firstFrom(atMs: readonly number[], fromMs: number): number {
  let [low, high] = [0, atMs.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (atMs[middle]! < fromMs) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** For a line of figures. */
export function percent(share: number, digits = 2): string {
  return `${(100 * share).toFixed(digits)} %`;
}
