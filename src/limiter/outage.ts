import type { StatusFacts } from '../model/status.ts';

/** The time into an outage for which a failure says nothing about its id, in ms; see TargetLimiter.isCircuitOpen. */
export const forgivenOutageMs = 900_000;

/** The number of failed answers in a row that opens the circuit, by their kind. */
const inARow = { unreachable: 5, trouble: 20 };
const sampleSize = 64;
const troubledShare = 0.75;

/**
 * Detects in one process that no request succeeds at the target any more: by failed connections or errors (`trouble`) in a row, or by errors in three
 * quarters of the last 64 answers. Throttled requests do not count here: learning/closed.ts decides about them, for all processes.
 */
export class OutageDetector {
  readonly #recent = new Uint8Array(sampleSize);
  #at = 0;
  #troubled = 0;
  #trouble = 0; // in a row, with or without refusals between them
  #unreachable = 0; // in a row

  /** Counts an answer. Returns true if the circuit has to open. */
  observe(signal: Signal): boolean {
    if (saysNothing.has(signal)) return false;
    const isTrouble = signal !== 'accepted';
    this.#remember(isTrouble ? 1 : 0);
    this.#trouble = isTrouble ? this.#trouble + 1 : 0;
    this.#unreachable = signal === 'unreachable' ? this.#unreachable + 1 : 0;
    if (!isTrouble) return false;
    return (
      this.#unreachable >= inARow.unreachable ||
      this.#trouble >= inARow.trouble ||
      this.#troubled >= troubledShare * sampleSize
    );
  }

  reset(): void {
    this.#recent.fill(0);
    this.#troubled = 0;
    this.#trouble = 0;
    this.#unreachable = 0;
  }

  #remember(trouble: 0 | 1): void {
    this.#troubled += trouble - this.#recent[this.#at]!;
    this.#recent[this.#at] = trouble;
    this.#at = (this.#at + 1) % sampleSize;
  }
}

/**
 * The statement of one answer about the target. It accepted the request (whatever the result for the id), throttled it, failed (5xx), did not answer,
 * or could not be reached. It asked for a wait (`throttled`; by a 5xx: `unavailable`). Or it says nothing.
 */
export type Signal = StatusFacts['signal'] | 'lost' | 'unreachable' | 'throttled' | 'unavailable';

/** Whether a circuit opens for such an answer: never for a throttled one. */
export function isTrouble(signal: Signal): boolean {
  return signal === 'trouble' || signal === 'lost' || signal === 'unreachable';
}

/** Whether an answer may be about its id alone, because the server was there. */
export function canBeIdSpecific(signal: Signal): boolean {
  return signal === 'trouble' || signal === 'lost';
}

/** Signals that do not say whether requests succeed. */
const saysNothing: ReadonlySet<Signal> = new Set(['refused', 'throttled', 'unavailable', 'nothing']);

/** The kind that a report counts an answer as. */
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

/** The answers that a process got since its last report, by the epoch of their permits. */
export class AnswerTally {
  readonly #byEpoch: Counts[] = [];
  #last: Counts = this.#of(0);
  sent = 0;
  latencies = 0;
  latencySum = 0;
  lost = 0;

  /** `ms`: how long the answer took. */
  add(epoch: number, signal: Signal, ms: number): void {
    const counts = this.#last.epoch === epoch ? this.#last : this.#of(epoch);
    this.#last = counts;
    if (signal === 'accepted') {
      counts.accepted++;
      this.latencies++;
      this.latencySum += ms;
      return;
    }
    const kind = countedAs[signal];
    if (kind !== null) counts[kind]++;
    if (signal === 'lost') this.lost++;
  }

  /** The counts as a list: epoch, accepted, refused, trouble; and so on. */
  flat(): number[] {
    const some = this.#byEpoch.filter(({ accepted, refused, trouble }) => accepted + refused + trouble > 0);
    return some.flatMap(({ epoch, accepted, refused, trouble }) => [epoch, accepted, refused, trouble]);
  }

  #of(epoch: number): Counts {
    const known = this.#byEpoch.find((counts) => counts.epoch === epoch);
    if (known !== undefined) return known;
    const counts = { epoch, accepted: 0, refused: 0, trouble: 0 };
    this.#byEpoch.push(counts);
    return counts;
  }
}
