import { setTimeout as sleep } from 'node:timers/promises';
import { messageOf } from '../errors.ts';
import type { Log } from '../logger.ts';
import { withTimeout } from '../queue/with-timeout.ts';
import { describeRedisError } from '../redis/errors.ts';

/** A part of a process that lives long: what it does when the process comes up, and when it goes. */
export type Part = {
  name: string;
  /** Throws if the process can't do without it. */
  start?(): void | Promise<void>;
  /** Begins nothing new from its call on, and returns when nothing is left. May be called before `start` has returned. */
  drain?(): void | Promise<void>;
};

const drainMs = 11_200; // of all parts together: a process has ended 12 s after its stop signal

/**
 * The parts of a process. They start in the order of the list, and drain in the opposite one: what uses a part is gone before it.
 * States: idle → starting → up → draining → drained; draining may begin at any time.
 */
export class Parts {
  readonly #parts: readonly Part[];
  readonly #log: Log;
  readonly #begun: Part[] = [];
  #state: 'idle' | 'starting' | 'up' | 'draining' | 'drained' = 'idle';
  #drained: Promise<void> | null = null;

  constructor(parts: readonly Part[], log: Log) {
    this.#parts = parts;
    this.#log = log;
  }

  get state() {
    return this.#state;
  }

  /**
   * Starts one part after another, until `stop` is aborted: then it drains at once, and returns although a part may still be coming up. If
   * one throws, drain those before it.
   */
  async start(stop: AbortSignal): Promise<void> {
    this.#state = 'starting';
    const stopped = new Promise<void>((resolve) => {
      stop.addEventListener('abort', () => resolve(this.drain()), { once: true });
    });
    for (const part of this.#parts) {
      if (stop.aborted) return;
      this.#begun.push(part);
      await Promise.race([part.start?.(), stopped]);
    }
    if (!stop.aborted) this.#state = 'up';
  }

  /** Drains what was started. Never throws, and takes 11.2 s at most: a part that hangs is left behind. Calling it again waits for the same. */
  drain(): Promise<void> {
    this.#drained ??= this.#drainAll(performance.now() + drainMs);
    return this.#drained;
  }

  async #drainAll(endsAt: number): Promise<void> {
    this.#state = 'draining';
    for (const part of this.#begun.toReversed()) {
      await withTimeout(Math.max(0, endsAt - performance.now()), this.#drainOne(part));
      this.#log.debug({ part: part.name }, 'drained');
    }
    this.#state = 'drained';
  }

  async #drainOne(part: Part): Promise<void> {
    try {
      await part.drain?.();
    } catch (error) {
      this.#log.warn({ part: part.name, reason: messageOf(error) }, 'a part did not drain');
    }
  }
}

/**
 * A part that does its task again and again, `everyMs` after the end of the last time. One that fails is tried again then; why is told
 * once, until it is something else or the task has gone well.
 */
export function repeat(name: string, everyMs: number, task: () => Promise<void>, log: Log): Part {
  const stopping = new AbortController();
  let lastReason = '';
  const logFailure = (reason: string) => {
    if (reason !== lastReason && reason !== '') log.warn({ part: name, reason }, 'a task failed, retrying');
    lastReason = reason;
  };
  const loop = async () => {
    while (!stopping.signal.aborted) {
      logFailure(await task().then(() => '', describeRedisError));
      await sleep(everyMs, undefined, { signal: stopping.signal }).catch(() => {});
    }
  };
  // What is under way when it drains is not waited for: against a Redis that hangs it may never end.
  return { name, start: () => void loop(), drain: () => stopping.abort() };
}
