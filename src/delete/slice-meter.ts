import { bucketsOfOne, latencyBuckets, sliceSums } from '../history/history.lua.ts';
import { type Slice, zeroSums } from '../history/history-points.ts';

/** An answer: its latency, the bucket of that (null = there was no answer), and its kind. */
type Answered = { ms: number; bucket: number | null; isRefused: boolean; isSuccess: boolean };

/**
 * Counts the work of this process for one run by the second in which its requests were sent. So the bins of several processes add up to what the
 * server saw.
 */
export class SliceMeter {
  readonly #now: () => number;
  #slices = new Map<number, Slice>();
  #last: Slice | null = null;

  /** `now`: ms since 1970 by the clock of Redis. */
  constructor(now: () => number) {
    this.#now = now;
  }

  /**
   * Counts an answer. Called for each request, so it is cheap. The request counts in the second in which it was sent, its time in flight in every
   * second until its answer.
   */
  recordAnswer({ ms, bucket, isRefused, isSuccess }: Answered): void {
    const now = this.#now();
    const slice = this.#sliceAt(now - ms);
    slice.requests++;
    if (isRefused) slice.refused++;
    if (isSuccess) slice.deleted++;
    if (bucket !== null) slice.latencies[Math.min(latencyBuckets - 1, Math.ceil(bucket / bucketsOfOne))]!++;
    for (let from = now - ms; from < now; ) {
      const to = Math.min(now, 1_000 * (Math.floor(from / 1_000) + 1));
      this.#sliceAt(from).busyMs += to - from;
      from = to;
    }
  }

  /** Adds to the present second. */
  add(sum: (typeof sliceSums)[number], by: number): void {
    this.#sliceAt(this.#now())[sum] += by;
  }

  /** Returns the seconds since the last call. */
  take(): Slice[] {
    const slices = [...this.#slices.values()];
    this.#slices = new Map();
    this.#last = null;
    return slices;
  }

  #sliceAt(ms: number): Slice {
    const second = Math.floor(ms / 1_000);
    if (this.#last?.second === second) return this.#last;
    const known = this.#slices.get(second) ?? { ...zeroSums(sliceSums), second };
    this.#slices.set(second, known);
    this.#last = known;
    return known;
  }
}
