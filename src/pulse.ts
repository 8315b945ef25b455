import { sleepUntilAborted } from './wait.ts';

/** `clock`: monotonic ms; `idleAfterMs`: the time without work after which a process is idle; `idleEveryMs`: how often it looks then. */
type PulseOptions = {
  clock: () => number;
  sleep: (ms: number, ended: AbortSignal) => Promise<unknown>;
  idleAfterMs: number;
  idleEveryMs: number;
};

const usual: PulseOptions = {
  clock: () => performance.now(),
  sleep: sleepUntilAborted,
  idleAfterMs: 60_000,
  idleEveryMs: 30_000,
};

/**
 * How often the parts of a process look at Redis. Without work for a minute the process is idle, and each part looks every 30 s. When there is work
 * again, all of them look at once. Only this class knows when a process is idle.
 */
export class Pulse {
  readonly #options: PulseOptions;
  readonly #wakers = new Set<() => void>();
  #workedAt: number;

  constructor(options: Partial<PulseOptions> = {}) {
    this.#options = { ...usual, ...options };
    this.#workedAt = this.#options.clock();
  }

  get isIdle(): boolean {
    return this.#options.clock() - this.#workedAt >= this.#options.idleAfterMs;
  }

  /** Notes that there is work, or may be. */
  wake(): void {
    const wasIdle = this.isIdle;
    this.#workedAt = this.#options.clock();
    if (wasIdle) for (const waker of [...this.#wakers]) waker();
  }

  /** Calls `waker` each time an idle process wakes, until the function that it returns is called. */
  onWake(waker: () => void): () => void {
    this.#wakers.add(waker);
    return () => void this.#wakers.delete(waker);
  }

  /** The time between two looks of a part that looks every `everyMs` while there is work. */
  everyMs(everyMs: number): number {
    return this.isIdle ? Math.max(everyMs, this.#options.idleEveryMs) : everyMs;
  }

  /** Sleeps until the next look, for `dueMs` at most if that is longer than `everyMs`, or until `stop` is aborted. Never rejects. */
  async sleep(everyMs: number, stop: AbortSignal, dueMs = Number.POSITIVE_INFINITY): Promise<void> {
    if (stop.aborted) return;
    const ended = new AbortController();
    const end = () => ended.abort();
    const forget = this.onWake(end);
    stop.addEventListener('abort', end, { once: true });
    await this.#options.sleep(Math.max(everyMs, Math.min(this.everyMs(everyMs), dueMs)), ended.signal);
    stop.removeEventListener('abort', end);
    forget();
  }
}

/** The pulse of a process that always has work. */
export function steadyPulse(): Pulse {
  return new Pulse({ idleAfterMs: Number.POSITIVE_INFINITY });
}
