import { priorityFromStored, shares } from '../ledger/run.ts';
import { Permits } from '../limiter/permits.ts';
import type { PaceReply } from '../limiter/run-pace.ts';
import { Line } from '../limiter/turns.ts';
import { paceOf, rateFromStored } from '../model/rate.ts';
import type { Lanes, QueuedRequest } from './lanes.ts';

/** The way of a run's requests out of this process. */
export type Way = {
  /** How many of so many requests may be marked now and still leave soon. */
  room(wanted: number): number;
  /** So many requests will be submitted once they are marked: their places are taken. A negative number takes it back. */
  expect(requests: number): void;
  submit(request: QueuedRequest): void;
  /** Asks everybody who waits whether they still want to leave. */
  review(): void;
  /** For how long the run's own rate brings this process no permit, in ms; 0 = it has some, or needs none. */
  readonly waitMs: number;
};

/**
 * The requests of one run, in a line at the lanes of each resource. Where the run has a rate of its own, each leaves with a permit of that
 * rate. As long as nobody knows whether it has one, nothing leaves.
 */
export class RunLine {
  readonly permits = new Permits();
  readonly #clock: () => number;
  readonly #lines = new Map<Lanes, Line<QueuedRequest>>();
  #rate: string | null = null;
  #share: number = shares.normal;
  #perSecond: number | null = null;
  #expected = 0;
  #nextAtMs = 0;

  /** `clock`: monotonic ms. */
  constructor(clock: () => number) {
    this.#clock = clock;
  }

  /** What Redis says about the run's rate and its share. `offsetMs`: our clock − that of Redis. */
  see({ rate, first, gap, count, priority, nextAt }: PaceReply, offsetMs: number): void {
    this.#share = shares[priorityFromStored(priority)];
    if (rate !== this.#rate) this.#change(rate);
    this.#nextAtMs = nextAt + offsetMs;
    this.permits.add({ firstMs: first + offsetMs, gapMs: gap, count }, this.#clock());
    for (const lanes of this.#lines.keys()) lanes.pump();
  }

  /** The pace of the run's own rate; null while it has none, or nobody knows. */
  get perSecond(): number | null {
    return this.#perSecond;
  }

  /** For how long the run's own rate brings no permit; see `Way`. */
  get waitMs(): number {
    const now = this.#clock();
    if (!this.#rate || this.permits.inHand(now) > 0 || this.permits.hasUnused) return 0;
    return Math.max(0, this.#nextAtMs - now);
  }

  /** Permits that went unused here, to be given back: as long as Redis has not answered, they may be the next ones. */
  takeUnused(): number {
    const unused = this.permits.takeUnused();
    if (unused > 0) this.#nextAtMs = 0;
    return unused;
  }

  /** The way over these lanes. */
  to(lanes: Lanes): Way {
    const line = this.#lineAt(lanes);
    const waitMs = () => this.waitMs;
    return {
      room: (wanted) => {
        const bounded = Math.min(wanted, this.#room);
        return bounded > 0 ? lanes.room(line, bounded) : 0;
      },
      expect: (requests) => {
        this.#expected += requests;
        lanes.expect(line, requests);
      },
      submit: (request) => lanes.submit(line, request),
      review: () => lanes.review(),
      get waitMs() {
        return waitMs();
      },
    };
  }

  close(): void {
    for (const line of this.#lines.values()) line.review();
  }

  #change(rate: string): void {
    const read = rateFromStored(rate);
    this.permits.drop();
    this.#rate = rate;
    this.#perSecond = read && paceOf(read);
  }

  #lineAt(lanes: Lanes): Line<QueuedRequest> {
    const known = this.#lines.get(lanes);
    if (known !== undefined) return known;
    const permits = () => (this.#rate === '' ? null : this.permits);
    const line = new Line<QueuedRequest>({ permits, weight: () => this.#share, stillWants });
    this.#lines.set(lanes, line);
    return line;
  }

  get #room(): number {
    if (this.#rate === '') return Number.POSITIVE_INFINITY;
    let waiting = 0;
    for (const line of this.#lines.values()) waiting += line.length;
    return this.permits.inHand(this.#clock()) - waiting - this.#expected;
  }
}

function stillWants(request: QueuedRequest): boolean {
  const authorization = request.leave();
  if (authorization === null) request.answered(null, 0);
  else request.authorization = authorization;
  return authorization !== null;
}
