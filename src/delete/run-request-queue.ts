import { RunQueue } from '../limiter/fair-scheduler.ts';
import { Permits, type Unused } from '../limiter/permits.ts';
import type { PermitReply } from '../limiter/run-pace.ts';
import { paceOf, rateFromStored } from '../model/rate.ts';
import { readTimeWindow, type TimeWindow, type WindowState, windowStateAt } from '../model/time-window.ts';
import { near, type Spans } from '../redis/distance.ts';
import type { ConnectionPool, QueuedRequest } from './connection-pool.ts';

/** A run's access to a connection pool. */
export type PoolHandle = {
  /** The number of `wanted` requests that may be marked now and still be sent soon. */
  room(wanted: number): number;
  /** Reserves room for requests that are being marked. A negative number frees it. */
  reserve(requests: number): void;
  submit(request: QueuedRequest): void;
  /** Drops queued requests that may no longer be sent. */
  revalidate(): void;
  /** The time in ms until the run's window opens and its own rate may bring this process a permit; 0 = as far as is known, it may send. */
  readonly waitMs: number;
};

const maxLateMs = 60; // how long its permits wait for a permit of the target, which comes at another moment

/**
 * The requests of one run, in one queue for each connection pool. If the run has a rate of its own, each request takes a permit of that rate. If it
 * has a window, no request is sent outside of it. Nothing is sent until `receive` has brought its rate and window.
 */
export class RunRequestQueue {
  readonly permits = new Permits();
  readonly #clock: () => number;
  readonly #distance: Spans;
  readonly #queues = new Map<ConnectionPool, RunQueue<QueuedRequest>>();
  #rate: string | null = null;
  #perSecond: number | null = null;
  #reserved = 0;
  #nextAtMs = 0;
  #window: RunWindow = { text: '', window: null, state: alwaysOpen, since: 0 };
  #offsetMs = 0;

  /** `clock`: monotonic ms. */
  constructor(clock: () => number, distance: Spans = near) {
    this.#clock = clock;
    this.#distance = distance;
  }

  /** Takes over the run's rate, permits and window from Redis. `offsetMs`: our clock − the clock of Redis. */
  receive({ rate, now, first, gap, count, nextAt, window }: PermitReply, offsetMs: number): void {
    if (rate !== this.#rate) this.#change(rate);
    this.#offsetMs = offsetMs;
    if (window !== this.#window.text)
      this.#window = { text: window, window: readTimeWindow(window), state: closed, since: Infinity };
    this.#nextAtMs = nextAt + offsetMs - this.#distance.aheadMs;
    const till = String(first + gap * count);
    this.permits.add({ firstMs: first + offsetMs, gapMs: gap, count, leasedAt: now, till }, this.#clock(), maxLateMs);
    if (!this.isOpen) this.permits.drop();
    for (const pool of this.#queues.keys()) pool.pump();
  }

  /** The run's own rate in requests per second; null if it has none, or before it is known. */
  get perSecond(): number | null {
    return this.#perSecond;
  }

  /** See `PoolHandle`. */
  get waitMs(): number {
    return Math.max(this.#untilPermitMs, this.isOpen ? 0 : this.#windowState.until - this.#redisNow);
  }

  /** Whether the run is inside its window, by the clock of Redis. Read before each request is sent. */
  get isOpen(): boolean {
    return this.#window.text === '' || this.#windowState.isOpen;
  }

  /** The window, and when it opens, by the clock of Redis; 0 = it is open. */
  get closed(): { window: string; until: number } {
    const until = this.isOpen ? 0 : Math.min(this.#windowState.until, Number.MAX_SAFE_INTEGER);
    return { window: this.#window.text, until };
  }

  get #redisNow(): number {
    return this.#clock() - this.#offsetMs;
  }

  get #windowState(): WindowState {
    const { window, state, since } = this.#window;
    const now = this.#redisNow;
    if (window === null || (now >= since && now < state.until)) return state;
    Object.assign(this.#window, { state: windowStateAt(window, now), since: now });
    return this.#window.state;
  }

  get #untilPermitMs(): number {
    const now = this.#clock();
    if (!this.#rate || this.permits.inHand(now) > 0 || this.permits.hasUnused) return 0;
    return Math.max(0, this.#nextAtMs - now);
  }

  /** Takes the unused permits, to give them back. Until Redis answers, they may be the next ones. */
  takeUnused(): Unused {
    const taken = this.permits.takeUnused();
    if (taken.unused > 0) this.#nextAtMs = 0;
    return taken;
  }

  /** Returns the run's handle for this pool. */
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

  /** Drops queued requests of closed gates. */
  close(): void {
    for (const queue of this.#queues.values()) queue.revalidate(this.#clock());
  }

  #change(rate: string): void {
    const read = rateFromStored(rate);
    this.permits.drop();
    this.#rate = rate;
    this.#perSecond = read && paceOf(read);
  }

  #queueAt(pool: ConnectionPool): RunQueue<QueuedRequest> {
    const known = this.#queues.get(pool);
    if (known !== undefined) return known;
    const permits = () => (this.#rate === '' ? null : this.permits);
    const queue = new RunQueue<QueuedRequest>({ permits, stillWants });
    this.#queues.set(pool, queue);
    return queue;
  }

  get #room(): number {
    if (!this.isOpen) return 0;
    if (this.#rate === '') return Number.POSITIVE_INFINITY;
    let waiting = 0;
    for (const queue of this.#queues.values()) waiting += queue.length;
    return this.permits.inHand(this.#clock()) - waiting - this.#reserved;
  }
}

/**
 * A window as Redis has it, its state, and since when the state is known, by the clock of Redis. `window` null: there is none, or it can't be read.
 */
type RunWindow = { text: string; window: TimeWindow | null; state: WindowState; since: number };

const alwaysOpen: WindowState = { isOpen: true, until: Infinity };
const closed: WindowState = { isOpen: false, until: Infinity };

function stillWants(request: QueuedRequest, nowMs: number): boolean {
  const authorization = request.authorize(nowMs);
  if (authorization === null) request.answered(null, 0);
  else request.authorization = authorization;
  return authorization !== null;
}
