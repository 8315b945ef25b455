/** How far our clock is ahead of that of Redis, and how sure that is, in ms. */
type Sample = { offsetMs: number; errorMs: number; atMs: number };

const driftPerMs = 0.0005; // clocks drift apart by half a millisecond a second at most, however bad they are

/**
 * The distance between our monotonic clock and the clock of Redis, from calls and their answers. An answer is known to have been made
 * at some moment of its call, so a call that took long says little: slots in time that were placed by it would come too early or too
 * late by up to half of that, and bunch with their neighbours. So the surest call of late counts, until one contradicts it.
 */
export class ClockOffset {
  #best: Sample | null = null;

  /** Our clock − that of Redis, in ms; 0 before the first answer. */
  get ms(): number {
    return this.#best?.offsetMs ?? 0;
  }

  /** One call: when it began and when its answer came by our clock, and when it was answered by that of Redis. */
  see(askedMs: number, answeredMs: number, redisMs: number): void {
    const middleMs = (askedMs + answeredMs) / 2;
    const sample = { offsetMs: middleMs - redisMs, errorMs: (answeredMs - askedMs) / 2, atMs: answeredMs };
    if (this.#best === null || isSurer(sample, this.#best) || contradicts(sample, this.#best)) this.#best = sample;
  }
}

function errorNow({ errorMs, atMs }: Sample, nowMs: number): number {
  return errorMs + (nowMs - atMs) * driftPerMs;
}

function isSurer(sample: Sample, best: Sample): boolean {
  return sample.errorMs <= errorNow(best, sample.atMs);
}

/** Somebody has set the clock of Redis, or another server is Redis now. */
function contradicts(sample: Sample, best: Sample): boolean {
  return Math.abs(sample.offsetMs - best.offsetMs) > sample.errorMs + errorNow(best, sample.atMs);
}
