import type { Permits } from '../limiter/permits.ts';
import { type Line, Turns } from '../limiter/turns.ts';
import { type Answer, noContent } from './verdict.ts';

/** A request that waits for its turn. */
export type QueuedRequest = {
  path: string;
  /** The statuses by which the target says "not now", as its run takes them. */
  waits: ReadonlySet<number>;
  /** The authorization header to send with, or null if the request must stay. Asked at the last moment. */
  leave(): string | null;
  /** What `leave` said last. */
  authorization?: string;
  /** Called exactly once; null = the request stayed. `ms`: how long the answer took. */
  answered(answer: Answer | null, ms: number): void;
};

type Lane = {
  send(path: string, authorization: string, done: (answer: Answer) => void): void;
  close(): void;
};

/** What the lanes ask the limiter of their target, and tell it. */
export type LaneLimits = {
  /** Of the target's rate. */
  permits: Permits;
  /** Requests this process may have on the wire. */
  readonly inFlightShare: number;
  /** Whether nothing may leave at the moment: the server asked to wait. */
  readonly isHeld: boolean;
  /** To be handed back with the answer: which permits a request was sent with. */
  sent(nowMs: number): number;
  answered(tag: number, answer: Answer, ms: number, waits: ReadonlySet<number>): void;
};

const tickMs = 100;
const ticksAhead = 2.5;
const letInEveryMs = 3;
const crowdedLetInEveryMs = 20;
const waitingPerLane = 4;
const enoughChunks = 4;
const shortForMs = 150; // a chunk that has to wait for room asks again ten times a second

/**
 * The in-flight slots of a process, shared by all chunks in its hands. The runs take turns, by their weights: a request waits in the line
 * of its run for the next free lane and for a permit of the target's rate, beside one of the run's own where it has a rate.
 */
export class Lanes {
  readonly size: number;
  readonly #lanes: Lane[];
  readonly #free: Lane[];
  readonly #limits: LaneLimits;
  readonly #turns: Turns<QueuedRequest>;
  readonly #clock: () => number;
  readonly #tick: NodeJS.Timeout;
  readonly #demand = new Demand();
  #answeredInTick = 0;
  #answeredBefore = 0;
  #letInAt = Number.NEGATIVE_INFINITY;
  #shortAt = Number.NEGATIVE_INFINITY; // when somebody wanted more than there was room for

  /** `clock`: monotonic ms. */
  constructor(size: number, open: () => Lane, limits: LaneLimits, clock: () => number) {
    this.size = size;
    this.#limits = limits;
    this.#clock = clock;
    this.#lanes = Array.from({ length: size }, open);
    this.#free = [...this.#lanes];
    this.#turns = new Turns<QueuedRequest>({
      permits: limits.permits,
      hasRoom: () => this.#freeLanes > 0,
      go: (request) => this.#send(request),
      clock,
    });
    this.#tick = setInterval(() => this.#measure(), tickMs).unref();
  }

  get inFlight(): number {
    return this.size - this.#free.length;
  }

  /**
   * How many of so many requests of this line may be marked now and still leave within about a quarter of a second. Where others want room
   * as well, no more than the line's share.
   */
  room(line: Line<QueuedRequest>, wanted: number): number {
    const now = this.#clock();
    const all = this.#limits.isHeld ? 0 : this.#soon(now);
    const left = all - this.#turns.length - this.#demand.expected;
    const mayHave = Math.min(left, this.#demand.share(line, all, now));
    if (left < wanted) this.#shortAt = now;
    return Math.max(0, Math.min(wanted, mayHave));
  }

  /** So many requests of the line will be submitted once they are marked: their places are taken. A negative number takes it back. */
  expect(line: Line<QueuedRequest>, requests: number): void {
    this.#demand.expect(line, requests);
  }

  /**
   * True when the lanes can use another chunk beside so many in hand: fewer than four requests a lane wait in line. At most one chunk in
   * 3 ms is let in, so that its requests are seen before the next one. Fast answers keep few chunks in hand; stragglers make room for more.
   * Where they are crowded, chunks are only taken to find one of a run that waits for its share.
   */
  letIn(inHand: number, isRunWaiting: boolean): boolean {
    const now = this.#clock();
    const isCrowded = this.isCrowded(inHand);
    if (isCrowded && !isRunWaiting) return false;
    const everyMs = isCrowded ? crowdedLetInEveryMs : letInEveryMs;
    if (this.#turns.length >= waitingPerLane * this.size || now - this.#letInAt < everyMs) return false;
    this.#letInAt = now;
    return true;
  }

  /** Whether so many chunks are enough, and want more room than there is: another one would only take it away from them. */
  isCrowded(inHand: number): boolean {
    return inHand >= enoughChunks && this.#clock() - this.#shortAt < shortForMs;
  }

  /** The request waits at the end of this line, which is asked whether it still wants to leave. */
  submit(line: Line<QueuedRequest>, request: QueuedRequest): void {
    this.#turns.join(line, request);
  }

  /** There may be permits or slots again. */
  pump(): void {
    this.#turns.pump();
  }

  /** Asks everybody in line whether they still want to leave; called when a gate closes. */
  review(): void {
    this.#turns.review();
  }

  /** Whether permits had to wait for a free lane since this was asked last. */
  takeStarved(): boolean {
    return this.#turns.takeStarved();
  }

  close(): void {
    clearInterval(this.#tick);
    this.#turns.close();
    for (const lane of this.#lanes) lane.close();
  }

  /** Requests that can leave within about a quarter of a second. */
  #soon(now: number): number {
    const ahead = Math.max(this.#answeredInTick, this.#answeredBefore) * ticksAhead;
    const fast = Math.floor(Math.max(0, this.#freeLanes) + ahead);
    return Math.min(fast, this.#limits.permits.inHand(now));
  }

  get #freeLanes(): number {
    return Math.min(this.#free.length, this.#limits.inFlightShare - this.inFlight);
  }

  #send(request: QueuedRequest): void {
    const lane = this.#free.pop()!;
    const sentAt = this.#clock();
    const tag = this.#limits.sent(sentAt);
    lane.send(request.path, request.authorization!, (answer) => {
      const ms = this.#clock() - sentAt;
      this.#answeredInTick++;
      this.#free.push(lane);
      this.#limits.answered(tag, answer, ms, request.waits);
      this.#turns.pump();
      request.answered(isNoContent(answer) ? noContent : answer, ms);
    });
  }

  #measure(): void {
    this.#answeredBefore = this.#answeredInTick;
    this.#answeredInTick = 0;
    this.#turns.review();
  }
}

function isNoContent(answer: Answer): boolean {
  return answer.kind === 'status' && answer.status === 204;
}

type Wish = { expected: number; askedMs: number };

/** A line in which requests wait, and its part in what leaves. */
type Waiting = { readonly length: number; readonly weight: number };

const wantsForMs = 250; // whoever is given less than it wants asks again sooner

/** Who wants room at the lanes. Lines that want some at the same time share it by their weights; one alone may have it all. */
export class Demand {
  readonly #wishes = new Map<Waiting, Wish>();
  #expected = 0;

  /** Requests of all lines that are being marked. */
  get expected(): number {
    return this.#expected;
  }

  expect(line: Waiting, requests: number): void {
    this.#expected += requests;
    this.#wishOf(line).expected += requests;
  }

  /** What the line, which wants room, may have of `all` places beside those it has taken. */
  share(line: Waiting, all: number, nowMs: number): number {
    const wish = this.#wishOf(line);
    wish.askedMs = nowMs;
    let weights = 0;
    for (const [other, { askedMs, expected }] of this.#wishes) {
      if (nowMs - askedMs <= wantsForMs) weights += other.weight;
      else if (expected === 0) this.#wishes.delete(other);
    }
    return Math.ceil((all * line.weight) / weights) - line.length - wish.expected;
  }

  #wishOf(line: Waiting): Wish {
    const known = this.#wishes.get(line);
    if (known !== undefined) return known;
    const wish = { expected: 0, askedMs: Number.NEGATIVE_INFINITY };
    this.#wishes.set(line, wish);
    return wish;
  }
}
