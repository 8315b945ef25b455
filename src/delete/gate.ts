/**
 * Whether this process may send requests of one run. It is open while Redis said within the last second that the run is
 * `running`. Without an answer nothing is sent: a process that cannot be reached must not send.
 */
export class Gate {
  readonly #now: () => number;
  readonly #closed = new AbortController();
  #confirmedAt: number;

  /** `now`: monotonic milliseconds, so that a stopped and continued process finds its gate closed. */
  constructor(now: () => number) {
    this.#now = now;
    this.#confirmedAt = now();
  }

  /** Aborted once the gate has closed; it never opens again (a chunk that goes on later gets a new gate). */
  get closed(): AbortSignal {
    return this.#closed.signal;
  }

  /** Read before each request is sent. */
  get isOpen(): boolean {
    return !this.#closed.signal.aborted && this.#now() - this.#confirmedAt < staleAfterMs;
  }

  /** Redis has just said that the run is running. `askedAt`: when the question was sent. */
  confirm(askedAt: number): void {
    this.#confirmedAt = askedAt;
  }

  close(): void {
    this.#closed.abort();
  }

  /** Closes the gate if Redis was silent for too long. */
  closeIfStale(): void {
    if (!this.isOpen) this.close();
  }
}

const staleAfterMs = 1_000;
