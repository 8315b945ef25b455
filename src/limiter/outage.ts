import type { StatusFacts } from '../model/status.ts';

/** So many answers in a row that were no progress open the breaker. */
const inARow = { unreachable: 5, trouble: 20, refused: 64 };
const windowSize = 64;
const troubledShare = 0.75;

/**
 * Notices in one process that nothing gets through to the target any more: by so many connections, troubled answers or refusals in a
 * row, or because three quarters of the last 64 were trouble. Refusals are ordinary, so they count apart and it takes more of them. An
 * answer with a time to wait counts for nothing: it says itself when to go on.
 */
export class OutageDetector {
  readonly #recent = new Uint8Array(windowSize);
  #at = 0;
  #troubled = 0;
  #refused = 0; // in a row
  #trouble = 0; // in a row, refusals between them or not
  #unreachable = 0; // in a row

  /** True when the breaker must open. */
  observe(signal: Signal): boolean {
    if (signal === 'throttled' || signal === 'unavailable' || signal === 'nothing') return false;
    if (signal === 'refused') return ++this.#refused >= inARow.refused;
    const isTrouble = signal !== 'accepted';
    this.#remember(isTrouble ? 1 : 0);
    this.#refused = 0;
    this.#trouble = isTrouble ? this.#trouble + 1 : 0;
    this.#unreachable = signal === 'unreachable' ? this.#unreachable + 1 : 0;
    if (!isTrouble) return false;
    return (
      this.#unreachable >= inARow.unreachable ||
      this.#trouble >= inARow.trouble ||
      this.#troubled >= troubledShare * windowSize
    );
  }

  reset(): void {
    this.#recent.fill(0);
    this.#troubled = 0;
    this.#refused = 0;
    this.#trouble = 0;
    this.#unreachable = 0;
  }

  #remember(trouble: 0 | 1): void {
    this.#troubled += trouble - this.#recent[this.#at]!;
    this.#recent[this.#at] = trouble;
    this.#at = (this.#at + 1) % windowSize;
  }
}

/**
 * What one answer tells about the target: it took the request (whatever it thought of the id), it wants fewer, it is in trouble (5xx),
 * nothing came back, it could not be reached, it told how long to wait (by a 429, or closed by a 5xx), or it tells nothing.
 */
export type Signal = StatusFacts['signal'] | 'lost' | 'unreachable' | 'throttled' | 'unavailable';

/** What the estimate of the rate counts an answer as. */
const countedAs: Record<Exclude<Signal, 'accepted'>, 'refused' | 'trouble' | null> = {
  refused: 'refused',
  throttled: 'refused',
  unavailable: 'refused',
  trouble: 'trouble',
  lost: 'trouble',
  unreachable: 'trouble',
  nothing: null,
};

type Counts = { epoch: number; accepted: number; refused: number; trouble: number };

/** What a process has seen since its last report, by the epoch of the permits that were used. */
export class AnswerTally {
  readonly #byEpoch: Counts[] = [];
  #last: Counts = this.#of(0);
  sent = 0;
  latencies = 0;
  latencySum = 0;
  latencySquares = 0;
  lost = 0;

  /** `ms`: how long the answer took. */
  add(epoch: number, signal: Signal, ms: number): void {
    const counts = this.#last.epoch === epoch ? this.#last : this.#of(epoch);
    this.#last = counts;
    if (signal === 'accepted') {
      counts.accepted++;
      this.latencies++;
      this.latencySum += ms;
      this.latencySquares += ms * ms;
      return;
    }
    const kind = countedAs[signal];
    if (kind !== null) counts[kind]++;
    if (signal === 'lost') this.lost++;
  }

  /** epoch, accepted, refused, trouble; and so on. */
  flat(): number[] {
    return this.#byEpoch.flatMap(({ epoch, accepted, refused, trouble }) => [epoch, accepted, refused, trouble]);
  }

  #of(epoch: number): Counts {
    const known = this.#byEpoch.find((counts) => counts.epoch === epoch);
    if (known !== undefined) return known;
    const counts = { epoch, accepted: 0, refused: 0, trouble: 0 };
    this.#byEpoch.push(counts);
    return counts;
  }
}
