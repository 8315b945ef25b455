import type { Admission } from '../../src/sandbox/server.ts';

/** Number of requests served at once, and the time that each takes; the others wait in a queue. */
type Capacity = { atOnce: number; serviceMs: number };

/** Number of requests that wait or are served: now, and since the last reset. */
type Load = { now: number; max: number; mean: number };

/** A server that serves so many requests at once, as the admission of a sandbox, and counts those that wait or are served. */
export class CapacityLimiter implements Admission {
  readonly #capacity: Capacity;
  readonly #clock: () => number;
  #queue: (() => void)[] = [];
  #served = 0; // requests being served now
  #inside = 0;
  #max = 0;
  #requestMs = 0; // the sum of the times that all requests were inside
  #since: number;
  #changedAt: number;

  /** `clock`: monotonic milliseconds. */
  constructor(capacity: Capacity, clock: () => number) {
    this.#capacity = capacity;
    this.#clock = clock;
    this.#since = this.#changedAt = clock();
  }

  /** Calls `serve` when the request has been served. */
  enter(serve: () => void): void {
    this.#count(1);
    this.#queue.push(serve);
    this.#admit();
  }

  /** The load. Its mean is over time: a request counts by how long it is inside. */
  get load(): Load {
    this.#count(0);
    const lasted = this.#changedAt - this.#since;
    return { now: this.#inside, max: this.#max, mean: lasted > 0 ? this.#requestMs / lasted : this.#inside };
  }

  resetLoad(): void {
    this.#since = this.#changedAt = this.#clock();
    this.#requestMs = 0;
    this.#max = this.#inside;
  }

  /** Drops the requests that wait. */
  close(): void {
    this.#queue = [];
  }

  #admit(): void {
    const { atOnce, serviceMs } = this.#capacity;
    while (this.#served < atOnce) {
      const next = this.#queue.shift();
      if (next === undefined) return;
      this.#served += 1;
      setTimeout(() => this.#leave(next), serviceMs);
    }
  }

  #leave(serve: () => void): void {
    serve();
    this.#served -= 1;
    this.#count(-1);
    this.#admit();
  }

  #count(change: number): void {
    const moment = this.#clock();
    this.#requestMs += this.#inside * (moment - this.#changedAt);
    this.#changedAt = moment;
    this.#inside += change;
    this.#max = Math.max(this.#max, this.#inside);
  }
}
