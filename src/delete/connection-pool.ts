import { FairScheduler, type RunQueue } from '../limiter/fair-scheduler.ts';
import type { Permits } from '../limiter/permits.ts';
import { successStatus } from '../model/status.ts';
import { near, type Spans } from '../redis/distance.ts';
import type { TargetRequest } from './send-delete.ts';
import { type Answer, isTokenRefusal, noContent } from './verdict.ts';

/** A request that waits to be sent. */
export type QueuedRequest = TargetRequest & {
  /** The statuses that mean "not now" in its run. */
  waitStatuses: ReadonlySet<number>;
  /** Returns the next `authorization`, or null if sending is not allowed. Called before the request gets its connection, at `nowMs` by the clock. */
  authorize(nowMs: number): string | null;
  /** Whether an earlier attempt for its id has failed. */
  hasFailed: boolean;
  /** Called exactly once; null = the request was not sent. `ms`: the latency of the answer. */
  answered(answer: Answer | null, ms: number): void;
};

type PooledConnection = {
  send(request: TargetRequest, done: (answer: Answer | null) => void): void;
  close(): void;
};

/** A connection, and the request on it. The object lives as long as the pool, so a request creates none. */
type PoolEntry = {
  readonly connection: PooledConnection;
  readonly done: (answer: Answer | null) => void;
  request: QueuedRequest | null;
  /** The queue the request waited in, and its two permits: one for the target's rate, one for the queue's own rate. */
  queue: RunQueue<QueuedRequest> | null;
  permitLeasedAt: number;
  queuePermitLeasedAt: number;
  wasClose: boolean;
  sentAt: number;
  epoch: number;
};

export type SentRequest = Pick<QueuedRequest, 'waitStatuses' | 'hasFailed' | 'authorization'>;

/** The epoch of a request's permit, whether that permit came shortly after the previous one, and when the request was sent. */
type SentPermit = Pick<PoolEntry, 'epoch' | 'wasClose' | 'sentAt'>;

/** The values that a connection pool reads from the limiter of its target, and its reports to the limiter. */
export type PoolLimits = {
  /** Permits of the target's rate. */
  permits: Permits;
  /** How far Redis is. */
  distance: Spans;
  /** The number of requests that this process may have in flight. */
  readonly inFlightShare: number;
  /** Whether sending is not allowed now: the target is throttled or stopped, or there is no token. */
  readonly isBlocked: boolean;
  /** Returns the epoch of the permits of a request that is sent now; `recordAnswer` needs it. */
  recordSent(nowMs: number, authorization: string): number;
  recordAnswer(sent: SentPermit, answer: Answer, ms: number, request: SentRequest): void;
};

const pacedMs = 1_000;
const tickMs = 100;
const ticksAhead = 2.5;
const admitEveryMs = 3;
const saturatedAdmitEveryMs = 20;
const waitingPerConnection = 4;
const connectionsPerChunk = 16; // connections that one chunk keeps busy
const saturatingChunks = { min: 2, max: 4 }; // min: one chunk continues while another ends; max: other runs keep most places for chunks
const oneMoreChunkMs = 500; // of waiting for Redis, for which one more chunk is taken: many are being claimed or returned then
const shortageMs = 150; // a chunk that waits for room asks ten times a second

/**
 * The connections of a process to its target, shared by all its chunks; each carries one request at a time. Runs share them alike. A request
 * waits in its run queue for a free connection, for a permit of the target's rate, and for a permit of the run's own rate if it has one. States:
 * open → closed.
 */
export class ConnectionPool {
  readonly size: number;
  readonly #saturatingChunks: number;
  readonly #entries: PoolEntry[];
  readonly #free: PoolEntry[];
  readonly #limits: PoolLimits;
  readonly #scheduler: FairScheduler<QueuedRequest>;
  readonly #clock: () => number;
  readonly #tick: NodeJS.Timeout;
  readonly #shares: FairShares;
  #answeredInTick = 0;
  #answeredBefore: number[] = [0]; // in the last ticks: as many as lie between a mark and its request
  #answeredAt = Number.NEGATIVE_INFINITY;
  #admittedAt = Number.NEGATIVE_INFINITY;
  #hasAskedSince = true; // whether a chunk has asked for room, or ended, since the last admission
  #shortageAt = Number.NEGATIVE_INFINITY; // time when a queue last got less room than it asked for
  #unpacedAt = Number.NEGATIVE_INFINITY; // time when a queue without permits of its own last asked for room

  /** `clock`: monotonic ms. */
  constructor(size: number, open: () => PooledConnection, limits: PoolLimits, clock: () => number) {
    this.size = size;
    const { min, max } = saturatingChunks;
    this.#saturatingChunks = Math.min(max, Math.max(min, Math.ceil(size / connectionsPerChunk)));
    this.#limits = limits;
    this.#clock = clock;
    this.#shares = new FairShares(limits.distance);
    this.#entries = Array.from({ length: size }, () => this.#newEntry(open()));
    this.#free = [...this.#entries];
    this.#scheduler = new FairScheduler<QueuedRequest>({
      permits: limits.permits,
      hasRoom: () => this.#freeConnections > 0,
      send: (request, nowMs, queue) => this.#send(request, nowMs, queue),
      clock,
    });
    this.#tick = setInterval(() => this.#measure(), tickMs).unref();
  }

  get inFlight(): number {
    return this.size - this.#free.length;
  }

  /** The time since the last answer, in ms. */
  get idleMs(): number {
    return this.#clock() - this.#answeredAt;
  }

  /**
   * The number of `wanted` requests that may be marked now and still be sent within about a quarter of a second after that. While other queues also
   * want room, at most the queue's share.
   */
  room(queue: RunQueue<QueuedRequest>, wanted: number): number {
    const now = this.#clock();
    this.#hasAskedSince = true;
    if (!queue.isPaced) this.#unpacedAt = now;
    const all = this.#limits.isBlocked ? 0 : this.#sendableSoon(now);
    const left = all - this.#scheduler.length - this.#shares.reserved;
    const mayHave = Math.min(left, this.#shares.roomFor(queue, all, now));
    if (left < wanted) this.#shortageAt = now;
    return Math.max(0, Math.min(wanted, mayHave));
  }

  /** Reserves room for requests that are being marked. A negative number frees it. */
  reserve(queue: RunQueue<QueuedRequest>, requests: number): void {
    this.#shares.reserve(queue, requests);
  }

  /**
   * Whether the pool can use one more chunk in addition to the leased ones: fewer than four requests per connection are queued. Admits at most one
   * chunk per 3 ms. While no chunk has asked for room or ended since the last admission, it admits one per 150 ms, so that other processes get their
   * share of few chunks. A saturated pool admits chunks only while a run waits for its share (`isRunWaiting`), one per 20 ms.
   */
  admit(leasedChunks: number, isRunWaiting: boolean): boolean {
    const now = this.#clock();
    const isSaturated = this.isSaturated(leasedChunks);
    if (isSaturated && !isRunWaiting) return false;
    const everyMs = isSaturated ? saturatedAdmitEveryMs : this.#hasAskedSince ? admitEveryMs : shortageMs;
    if (this.#scheduler.length >= waitingPerConnection * this.size || now - this.#admittedAt < everyMs) return false;
    this.#admittedAt = now;
    this.#hasAskedSince = false;
    return true;
  }

  /** Whether the leased chunks already ask for more room than there is: another chunk would only take room from them. */
  isSaturated(leasedChunks: number): boolean {
    const onTheirWay = Math.floor(this.#limits.distance.answerMs / oneMoreChunkMs);
    return leasedChunks >= this.#saturatingChunks + onTheirWay && this.#clock() - this.#shortageAt < shortageMs;
  }

  /** Notes that a chunk is settled or was returned: it may never have asked for room. */
  chunkEnded(): void {
    this.#hasAskedSince = true;
  }

  /** Appends the request to this queue. */
  submit(queue: RunQueue<QueuedRequest>, request: QueuedRequest): void {
    this.#scheduler.add(queue, request);
  }

  /** Sends all requests that may be sent; call it when there may be new permits or free connections. */
  pump(): void {
    this.#scheduler.pump();
  }

  /** Drops queued requests that may no longer be sent; call it when a gate closes. */
  revalidate(): void {
    this.#scheduler.revalidate();
  }

  /** Whether permits had to wait for a free connection since the last call. */
  takeStarved(): boolean {
    return this.#scheduler.takeStarved();
  }

  /** Whether all queues that wanted to send in the last second have a rate of their own. */
  get isPaced(): boolean {
    return this.#clock() - this.#unpacedAt > pacedMs + this.#limits.distance.answerMs;
  }

  /** Drops all connections; see `TargetConnection.close` for the requests on them. */
  close(): void {
    clearInterval(this.#tick);
    this.#scheduler.close();
    for (const { connection } of this.#entries) connection.close();
  }

  /** The number of requests that can be sent within about a quarter of a second, or until their marks come from a Redis that is far away. */
  #sendableSoon(now: number): number {
    const ticks = ticksAhead + this.#limits.distance.aheadMs / tickMs;
    const ahead = Math.max(this.#answeredInTick, ...this.#answeredBefore) * ticks;
    const fast = Math.floor(Math.max(0, this.#freeConnections) + ahead);
    return Math.min(fast, this.#limits.permits.inHand(now));
  }

  get #freeConnections(): number {
    return Math.min(this.#free.length, this.#limits.inFlightShare - this.inFlight);
  }

  #newEntry(connection: PooledConnection): PoolEntry {
    const entry: PoolEntry = {
      connection,
      done: (answer) => this.#answered(entry, answer),
      request: null,
      queue: null,
      permitLeasedAt: 0,
      queuePermitLeasedAt: 0,
      wasClose: false,
      sentAt: 0,
      epoch: 0,
    };
    return entry;
  }

  #send(request: QueuedRequest, nowMs: number, queue: RunQueue<QueuedRequest>): void {
    const entry = this.#free.pop()!;
    entry.request = request;
    entry.queue = queue;
    entry.permitLeasedAt = this.#limits.permits.takenLeasedAt;
    entry.queuePermitLeasedAt = queue.takenLeasedAt;
    entry.wasClose = this.#limits.permits.wasClose;
    entry.sentAt = nowMs;
    entry.epoch = this.#limits.recordSent(nowMs, request.authorization);
    entry.connection.send(request, entry.done);
  }

  #answered(entry: PoolEntry, answer: Answer | null): void {
    const request = entry.request!;
    this.#answeredAt = this.#clock();
    const ms = this.#answeredAt - entry.sentAt;
    entry.request = null;
    this.#answeredInTick++;
    if (isTokenRefusal(answer)) this.#free.unshift(entry);
    else this.#free.push(entry);
    if (answer === null) this.#putBack(entry);
    else this.#limits.recordAnswer(entry, answer, ms, request);
    this.#scheduler.pump();
    request.answered(isNoContent(answer) ? noContent : answer, ms);
  }

  /** Returns the permits of a request that was never written. */
  #putBack({ queue, permitLeasedAt, queuePermitLeasedAt }: PoolEntry): void {
    this.#limits.permits.putBack(permitLeasedAt);
    queue!.putBack(queuePermitLeasedAt);
  }

  #measure(): void {
    this.#answeredBefore.unshift(this.#answeredInTick);
    this.#answeredBefore.length = Math.min(
      this.#answeredBefore.length,
      1 + Math.ceil(this.#limits.distance.aheadMs / tickMs),
    );
    this.#answeredInTick = 0;
    this.#scheduler.revalidate();
  }
}

function isNoContent(answer: Answer | null): boolean {
  return answer === noContent || (answer?.kind === 'status' && answer.status === successStatus);
}

/** `askedMs`: the time when the queue last asked for room, by the clock. */
type Share = { reserved: number; askedMs: number };

type Queue = { readonly length: number };

const shareLastsMs = 250; // a queue that gets less than it wants asks again sooner

/** Divides the room of a pool between the queues that recently asked for some, in equal parts. A queue that asks alone gets all of it. */
export class FairShares {
  readonly #shares = new Map<Queue, Share>();
  readonly #distance: Spans;
  #reserved = 0;

  constructor(distance: Spans = near) {
    this.#distance = distance;
  }

  /** Requests that are being marked, over all queues. */
  get reserved(): number {
    return this.#reserved;
  }

  reserve(queue: Queue, requests: number): void {
    this.#reserved += requests;
    this.#shareOf(queue).reserved += requests;
  }

  /** The number of further places out of `all` that the queue may use, in addition to its queued and reserved requests. */
  roomFor(queue: Queue, all: number, nowMs: number): number {
    const share = this.#shareOf(queue);
    share.askedMs = nowMs;
    let asking = 0;
    for (const [other, { askedMs, reserved }] of this.#shares) {
      if (nowMs - askedMs <= shareLastsMs + this.#distance.answerMs) asking += 1;
      else if (reserved === 0) this.#shares.delete(other);
    }
    return Math.ceil(all / asking) - queue.length - share.reserved;
  }

  #shareOf(queue: Queue): Share {
    const known = this.#shares.get(queue);
    if (known !== undefined) return known;
    const share = { reserved: 0, askedMs: Number.NEGATIVE_INFINITY };
    this.#shares.set(queue, share);
    return share;
  }
}
