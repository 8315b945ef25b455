import { type FairQueue, FairScheduler } from '../limiter/fair-scheduler.ts';
import type { Permits } from '../limiter/permits.ts';
import { successStatus } from '../model/status.ts';
import { type Answer, noContent } from './verdict.ts';

/** A request that waits to be sent. */
export type QueuedRequest = {
  path: string;
  /** The statuses by which the target says "not now", as its run takes them. */
  waitStatuses: ReadonlySet<number>;
  /** The authorization header to send with, or null if the request may not be sent. Called just before it is sent. */
  authorize(): string | null;
  /** What `authorize` returned last. */
  authorization?: string;
  /** Called exactly once; null = the request was not sent. `ms`: how long the answer took. */
  answered(answer: Answer | null, ms: number): void;
};

type PooledConnection = {
  send(path: string, authorization: string, done: (answer: Answer) => void): void;
  close(): void;
};

/** What a connection pool reads from the limiter of its target, and reports to it. */
export type PoolLimits = {
  /** Of the target's rate. */
  permits: Permits;
  /** Requests this process may have on the wire. */
  readonly inFlightShare: number;
  /** Whether nothing may be sent now: the target is throttled or stopped, or the token is awaited. */
  readonly isBlocked: boolean;
  /** To be handed back with the answer: which permits a request was sent with. */
  recordSent(nowMs: number): number;
  recordAnswer(tag: number, answer: Answer, ms: number, waitStatuses: ReadonlySet<number>): void;
};

const tickMs = 100;
const ticksAhead = 2.5;
const admitEveryMs = 3;
const saturatedAdmitEveryMs = 20;
const waitingPerConnection = 4;
const saturatingChunks = 4;
const shortageMs = 150; // a chunk that has to wait for room asks again ten times a second

/**
 * The in-flight slots of a process, shared by all its chunks. Runs are scheduled fairly, by their weights: a request waits in the queue
 * of its run for a free connection and for a permit of the target's rate, and for one of the run's own rate where it has one.
 */
export class ConnectionPool {
  readonly size: number;
  readonly #connections: PooledConnection[];
  readonly #free: PooledConnection[];
  readonly #limits: PoolLimits;
  readonly #scheduler: FairScheduler<QueuedRequest>;
  readonly #clock: () => number;
  readonly #tick: NodeJS.Timeout;
  readonly #shares = new FairShares();
  #answeredInTick = 0;
  #answeredBefore = 0;
  #admittedAt = Number.NEGATIVE_INFINITY;
  #shortageAt = Number.NEGATIVE_INFINITY; // when a queue last asked for more than there was room for

  /** `clock`: monotonic ms. */
  constructor(size: number, open: () => PooledConnection, limits: PoolLimits, clock: () => number) {
    this.size = size;
    this.#limits = limits;
    this.#clock = clock;
    this.#connections = Array.from({ length: size }, open);
    this.#free = [...this.#connections];
    this.#scheduler = new FairScheduler<QueuedRequest>({
      permits: limits.permits,
      hasRoom: () => this.#freeConnections > 0,
      send: (request) => this.#send(request),
      clock,
    });
    this.#tick = setInterval(() => this.#measure(), tickMs).unref();
  }

  get inFlight(): number {
    return this.size - this.#free.length;
  }

  /**
   * How many of so many requests of this queue may be marked now and still be sent within about a quarter of a second. Where other queues want room
   * as well, no more than the queue's share.
   */
  room(queue: FairQueue<QueuedRequest>, wanted: number): number {
    const now = this.#clock();
    const all = this.#limits.isBlocked ? 0 : this.#soon(now);
    const left = all - this.#scheduler.length - this.#shares.reserved;
    const mayHave = Math.min(left, this.#shares.roomFor(queue, all, now));
    if (left < wanted) this.#shortageAt = now;
    return Math.max(0, Math.min(wanted, mayHave));
  }

  /** Reserves places for requests of the queue that are being marked. A negative number frees them. */
  reserve(queue: FairQueue<QueuedRequest>, requests: number): void {
    this.#shares.reserve(queue, requests);
  }

  /**
   * True when the pool can use another chunk beside so many: fewer than four requests a connection are queued. At most one chunk in
   * 3 ms is admitted, so that its requests count before the next one. Fast answers keep few chunks here; slow ones make room for more.
   * When the pool is saturated, chunks are taken only to find one of a run that waits for its share.
   */
  admit(inHand: number, isRunWaiting: boolean): boolean {
    const now = this.#clock();
    const isSaturated = this.isSaturated(inHand);
    if (isSaturated && !isRunWaiting) return false;
    const everyMs = isSaturated ? saturatedAdmitEveryMs : admitEveryMs;
    if (this.#scheduler.length >= waitingPerConnection * this.size || now - this.#admittedAt < everyMs) return false;
    this.#admittedAt = now;
    return true;
  }

  /** Whether so many chunks are enough, and want more room than there is: another one would only take it away from them. */
  isSaturated(inHand: number): boolean {
    return inHand >= saturatingChunks && this.#clock() - this.#shortageAt < shortageMs;
  }

  /** Appends the request to this queue. */
  submit(queue: FairQueue<QueuedRequest>, request: QueuedRequest): void {
    this.#scheduler.enqueue(queue, request);
  }

  /** There may be permits or slots again. */
  pump(): void {
    this.#scheduler.pump();
  }

  /** Drops queued requests that may not be sent any more; called when a gate closes. */
  revalidate(): void {
    this.#scheduler.revalidate();
  }

  /** Whether permits had to wait for a free connection since the last call. */
  takeStarved(): boolean {
    return this.#scheduler.takeStarved();
  }

  close(): void {
    clearInterval(this.#tick);
    this.#scheduler.close();
    for (const connection of this.#connections) connection.close();
  }

  /** Requests that can be sent within about a quarter of a second. */
  #soon(now: number): number {
    const ahead = Math.max(this.#answeredInTick, this.#answeredBefore) * ticksAhead;
    const fast = Math.floor(Math.max(0, this.#freeConnections) + ahead);
    return Math.min(fast, this.#limits.permits.inHand(now));
  }

  get #freeConnections(): number {
    return Math.min(this.#free.length, this.#limits.inFlightShare - this.inFlight);
  }

  #send(request: QueuedRequest): void {
    const connection = this.#free.pop()!;
    const sentAt = this.#clock();
    const tag = this.#limits.recordSent(sentAt);
    connection.send(request.path, request.authorization!, (answer) => {
      const ms = this.#clock() - sentAt;
      this.#answeredInTick++;
      this.#free.push(connection);
      this.#limits.recordAnswer(tag, answer, ms, request.waitStatuses);
      this.#scheduler.pump();
      request.answered(isNoContent(answer) ? noContent : answer, ms);
    });
  }

  #measure(): void {
    this.#answeredBefore = this.#answeredInTick;
    this.#answeredInTick = 0;
    this.#scheduler.revalidate();
  }
}

function isNoContent(answer: Answer): boolean {
  return answer.kind === 'status' && answer.status === successStatus;
}

type Share = { reserved: number; askedMs: number };

/** A queue of requests, and its weight. */
type WeightedQueue = { readonly length: number; readonly weight: number };

const demandLastsMs = 250; // a queue that gets less than it wants asks again sooner

/** Which queues want room in the pool. Those that want some at the same time share it by their weights; one alone may have it all. */
export class FairShares {
  readonly #shares = new Map<WeightedQueue, Share>();
  #reserved = 0;

  /** Requests of all queues that are being marked. */
  get reserved(): number {
    return this.#reserved;
  }

  reserve(queue: WeightedQueue, requests: number): void {
    this.#reserved += requests;
    this.#shareOf(queue).reserved += requests;
  }

  /** How many of `all` places the queue may have beside those it has reserved. */
  roomFor(queue: WeightedQueue, all: number, nowMs: number): number {
    const share = this.#shareOf(queue);
    share.askedMs = nowMs;
    let weights = 0;
    for (const [other, { askedMs, reserved }] of this.#shares) {
      if (nowMs - askedMs <= demandLastsMs) weights += other.weight;
      else if (reserved === 0) this.#shares.delete(other);
    }
    return Math.ceil((all * queue.weight) / weights) - queue.length - share.reserved;
  }

  #shareOf(queue: WeightedQueue): Share {
    const known = this.#shares.get(queue);
    if (known !== undefined) return known;
    const share = { reserved: 0, askedMs: Number.NEGATIVE_INFINITY };
    this.#shares.set(queue, share);
    return share;
  }
}
