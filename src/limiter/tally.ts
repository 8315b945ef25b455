/**
 * What one answer tells about the target: it took the request (whatever it thought of the id), it wants fewer, it is in trouble (5xx),
 * nothing came back, it could not be reached, it told how long to wait (by a 429, or closed by a 5xx), or it tells nothing.
 */
export type Signal = 'accepted' | 'refused' | 'trouble' | 'lost' | 'unreachable' | 'told' | 'closed' | 'nothing';

type Counts = { epoch: number; accepted: number; refused: number; trouble: number };

/** What a process has seen since its last report, by the epoch of the permits that were used. */
export class Tally {
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
    } else if (['refused', 'told', 'closed'].includes(signal)) counts.refused++;
    else if (signal !== 'nothing') counts.trouble++;
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
