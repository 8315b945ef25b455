import type { Answer } from './answer.ts';

/** A request that waits for its turn. `leave` is asked at the last moment; null = it must not leave any more. */
export type QueuedRequest = {
  path: string;
  /** The authorization header to send with, or null if the request must stay. */
  leave(): string | null;
  /** Called exactly once; null = the request stayed. */
  answered(answer: Answer | null): void;
};

type Lane = {
  send(path: string, authorization: string, done: (answer: Answer) => void): void;
  close(): void;
};

const tickMs = 100;
const ticksAhead = 2.5;
const letInEveryMs = 3;
const waitingPerLane = 4;

/** The in-flight slots of a process, shared by all chunks in its hands. A request waits in line for the next free lane. */
export class Lanes {
  readonly size: number;
  readonly #lanes: Lane[];
  readonly #free: Lane[];
  readonly #line: QueuedRequest[] = [];
  #head = 0; // the line is read from here: shifting a long array costs its length
  #answeredInTick = 0;
  #answeredBefore = 0;
  readonly #tick: NodeJS.Timeout;
  #letInAt = Number.NEGATIVE_INFINITY;
  readonly #clock: () => number;

  /** `clock`: monotonic ms. */
  constructor(size: number, open: () => Lane, clock: () => number) {
    this.size = size;
    this.#clock = clock;
    this.#lanes = Array.from({ length: size }, open);
    this.#free = [...this.#lanes];
    this.#tick = setInterval(() => this.#measure(), tickMs).unref();
  }

  get inFlight(): number {
    return this.size - this.#free.length;
  }

  /** How many more requests may be marked now and still leave within about a quarter of a second. */
  get room(): number {
    const ahead = Math.max(this.#answeredInTick, this.#answeredBefore) * ticksAhead;
    return Math.floor(this.#free.length + ahead) - this.#queued;
  }

  /**
   * True when the lanes can use another chunk: fewer than four requests a lane wait in line. At most one chunk in 3 ms is let in, so
   * that its requests are seen before the next one. Fast answers keep few chunks in hand; stragglers make room for more.
   */
  letIn(): boolean {
    const now = this.#clock();
    if (this.#queued >= waitingPerLane * this.size || now - this.#letInAt < letInEveryMs) return false;
    this.#letInAt = now;
    return true;
  }

  submit(request: QueuedRequest): void {
    const lane = this.#free.pop();
    if (lane === undefined) this.#line.push(request);
    else this.#send(lane, request);
  }

  /** Asks everybody in line whether they still want to leave; called when a gate closes. */
  review(): void {
    const line = this.#line.splice(0).slice(this.#head);
    this.#head = 0;
    for (const request of line) {
      if (request.leave() === null) request.answered(null);
      else this.#line.push(request);
    }
  }

  close(): void {
    clearInterval(this.#tick);
    for (const lane of this.#lanes) lane.close();
  }

  get #queued(): number {
    return this.#line.length - this.#head;
  }

  #send(lane: Lane, request: QueuedRequest): void {
    const authorization = request.leave();
    if (authorization === null) {
      this.#passOn(lane);
      request.answered(null);
      return;
    }
    lane.send(request.path, authorization, (answer) => {
      this.#answeredInTick++;
      this.#passOn(lane);
      request.answered(answer);
    });
  }

  #passOn(lane: Lane): void {
    const next = this.#nextInLine();
    if (next !== undefined) this.#send(lane, next);
    else this.#free.push(lane);
  }

  #nextInLine(): QueuedRequest | undefined {
    const next = this.#line[this.#head];
    if (next === undefined) return undefined;
    this.#head++;
    if (this.#head === this.#line.length) {
      this.#line.length = 0;
      this.#head = 0;
    }
    return next;
  }

  #measure(): void {
    this.#answeredBefore = this.#answeredInTick;
    this.#answeredInTick = 0;
  }
}
