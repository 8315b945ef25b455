import { priorityFromStored, priorityWeights } from '../ledger/run.ts';
import { FairQueue } from '../limiter/fair-scheduler.ts';
import { Permits } from '../limiter/permits.ts';
import type { PaceReply } from '../limiter/run-pace.ts';
import { paceOf, rateFromStored } from '../model/rate.ts';
import type { ConnectionPool, QueuedRequest } from './connection-pool.ts';

/** What a run may do with a connection pool. */
export type PoolHandle = {
  /** How many of so many requests may be marked now and still be sent soon. */
  room(wanted: number): number;
  /** Reserves places for requests that are being marked. A negative number frees them. */
  reserve(requests: number): void;
  submit(request: QueuedRequest): void;
  /** Drops queued requests that may not be sent any more. */
  revalidate(): void;
  /** For how long the run's own rate brings this process no permit, in ms; 0 = it has some, or needs none. */
  readonly waitMs: number;
};

/**
 * The requests of one run, in a queue at each connection pool. Where the run has a rate of its own, each request takes a permit of that
 * rate. Nothing is sent until it is known whether it has one.
 */
export class RunRequestQueue {
  readonly permits = new Permits();
  readonly #clock: () => number;
  readonly #queues = new Map<ConnectionPool, FairQueue<QueuedRequest>>();
  #rate: string | null = null;
  #weight: number = priorityWeights.normal;
  #perSecond: number | null = null;
  #reserved = 0;
  #nextAtMs = 0;

  /** `clock`: monotonic ms. */
  constructor(clock: () => number) {
    this.#clock = clock;
  }

  /** What Redis says about the run's rate and its weight. `offsetMs`: our clock − that of Redis. */
  receive({ rate, first, gap, count, priority, nextAt }: PaceReply, offsetMs: number): void {
    this.#weight = priorityWeights[priorityFromStored(priority)];
    if (rate !== this.#rate) this.#change(rate);
    this.#nextAtMs = nextAt + offsetMs;
    this.permits.add({ firstMs: first + offsetMs, gapMs: gap, count }, this.#clock());
    for (const pool of this.#queues.keys()) pool.pump();
  }

  /** The pace of the run's own rate; null while it has none, or it is not known. */
  get perSecond(): number | null {
    return this.#perSecond;
  }

  /** For how long the run's own rate brings no permit; see `PoolHandle`. */
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

  /** The run's handle on this pool. */
  handleFor(pool: ConnectionPool): PoolHandle {
    const queue = this.#queueAt(pool);
    const waitMs = () => this.waitMs;
    return {
      room: (wanted) => {
        const bounded = Math.min(wanted, this.#room);
        return bounded > 0 ? pool.room(queue, bounded) : 0;
      },
      reserve: (requests) => {
        this.#reserved += requests;
        pool.reserve(queue, requests);
      },
      submit: (request) => pool.submit(queue, request),
      revalidate: () => pool.revalidate(),
      get waitMs() {
        return waitMs();
      },
    };
  }

  close(): void {
    for (const queue of this.#queues.values()) queue.revalidate();
  }

  #change(rate: string): void {
    const read = rateFromStored(rate);
    this.permits.drop();
    this.#rate = rate;
    this.#perSecond = read && paceOf(read);
  }

  #queueAt(pool: ConnectionPool): FairQueue<QueuedRequest> {
    const known = this.#queues.get(pool);
    if (known !== undefined) return known;
    const permits = () => (this.#rate === '' ? null : this.permits);
    const queue = new FairQueue<QueuedRequest>({ permits, weight: () => this.#weight, stillWants });
    this.#queues.set(pool, queue);
    return queue;
  }

  get #room(): number {
    if (this.#rate === '') return Number.POSITIVE_INFINITY;
    let waiting = 0;
    for (const queue of this.#queues.values()) waiting += queue.length;
    return this.permits.inHand(this.#clock()) - waiting - this.#reserved;
  }
}

function stillWants(request: QueuedRequest): boolean {
  const authorization = request.authorize();
  if (authorization === null) request.answered(null, 0);
  else request.authorization = authorization;
  return authorization !== null;
}
