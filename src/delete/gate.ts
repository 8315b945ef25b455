import { near, type Spans } from '../redis/distance.ts';

const staleAfterMs = 1_000;

/**
 * Whether this process may send requests of one run. It is open while Redis has said within the last second, or a little longer if Redis is far away,
 * that the run is `running`; a process that cannot reach Redis does not send. States: open → closed, for good.
 */
export class Gate {
  readonly #now: () => number;
  readonly #distance: Spans;
  readonly #closed = new AbortController();
  #isClosed = false;
  #confirmedAt: number;

  /** `now`: monotonic ms, so that a process that was suspended finds its gate closed. */
  constructor(now: () => number, distance: Spans = near) {
    this.#distance = distance;
    this.#now = now;
    this.#confirmedAt = now();
  }

  /** Aborted once the gate has closed. A chunk that continues later gets a new gate. */
  get closed(): AbortSignal {
    return this.#closed.signal;
  }

  get isOpen(): boolean {
    return this.isOpenAt(this.#now());
  }

  /** Whether requests may be sent. Read before each request, with the present time. */
  isOpenAt(nowMs: number): boolean {
    return !this.#isClosed && nowMs - this.#confirmedAt < staleAfterMs + this.#distance.answerMs;
  }

  /** Confirms the gate: Redis has just said that the run is running. `askedAt`: when it was asked. */
  confirm(askedAt: number): void {
    this.#confirmedAt = askedAt;
  }

  close(): void {
    this.#isClosed = true;
    this.#closed.abort();
  }

  /** Closes the gate if the last answer of Redis is too old. */
  closeIfStale(): void {
    if (!this.isOpen) this.close();
  }
}
