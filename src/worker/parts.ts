import { messageOf } from '../errors.ts';
import type { Log } from '../logger.ts';
import { type Pulse, steadyPulse } from '../pulse.ts';
import { describeRedisError } from '../redis/errors.ts';
import { withTimeout } from '../wait.ts';

/** A long-lived part of a process: its work when the process starts, and when it ends. */
export type Part = {
  name: string;
  /**
   * Starts the part. Its repeated work follows the pulse of the process, or another `rhythm`. Throws if the process cannot run without it.
   */
  start?(pulse?: Pulse, rhythm?: Pulse): void | Promise<void>;
  /** Ends the part: begins nothing new after the call, and returns when all work has ended. May be called before `start` has returned. */
  drain?(): void | Promise<void>;
};

const stopMs = 500;
const drainMs = 11_200; // for all parts together, because a process ends within 12 s after its stop signal

/**
 * The parts of a process. They start in the order of the list and drain in reverse order, so a part is drained before the parts that it uses. States:
 * idle → starting → up → draining → drained; draining may begin at any time.
 */
export class Parts {
  readonly #parts: readonly Part[];
  readonly #log: Log;
  readonly #pulse: Pulse;
  readonly #begun: Part[] = [];
  #state: 'idle' | 'starting' | 'up' | 'draining' | 'drained' = 'idle';
  #drained: Promise<void> | null = null;

  constructor(parts: readonly Part[], log: Log, pulse: Pulse = steadyPulse()) {
    this.#parts = parts;
    this.#log = log;
    this.#pulse = pulse;
  }

  get state() {
    return this.#state;
  }

  /**
   * Starts one part after another. If `stop` is aborted, it drains at once, and returns even if a part is still starting. Throws what a part throws;
   * call `drain` then.
   */
  async start(stop: AbortSignal): Promise<void> {
    this.#state = 'starting';
    const stopped = new Promise<void>((resolve) => {
      stop.addEventListener('abort', () => resolve(this.drain()), { once: true });
    });
    for (const part of this.#parts) {
      if (stop.aborted) return;
      this.#begun.push(part);
      await Promise.race([part.start?.(this.#pulse), stopped]);
    }
    if (!stop.aborted) this.#state = 'up';
  }

  /** Drains the started parts. Never throws, and takes 11.2 s at most: a part that hangs is abandoned. A second call waits for the first. */
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
 * A part that repeats its task, each time `everyMs` after the end of the last, or less often while the process is idle. A task that returns a number is
 * due again after so many ms, also then. Logs a failure once, and again when the reason changes or the task has succeeded in between. `stop`: the
 * signal of a task that can take long; the drain gives it half a second to give up leases.
 */
export function repeat(
  name: string,
  everyMs: number,
  task: (pulse: Pulse) => Promise<unknown>,
  log: Log,
  stop: AbortController | null = null,
): Part {
  const stopping = new AbortController();
  let lastReason = '';
  let running: Promise<unknown> = Promise.resolve();
  const logFailure = (reason: string) => {
    if (reason !== lastReason && reason !== '') log.warn({ part: name, reason }, 'a task failed, retrying');
    lastReason = reason;
  };
  const loop = async (pulse: Pulse, rhythm: Pulse) => {
    while (!stopping.signal.aborted) {
      running = task(pulse);
      logFailure(await running.then(() => '', describeRedisError));
      const due = await running.catch(() => null);
      await rhythm.sleep(everyMs, stopping.signal, typeof due === 'number' ? due : undefined);
    }
  };
  const drain = async () => {
    stopping.abort();
    stop?.abort();
    if (stop !== null) await withTimeout(stopMs, running); // no longer, as it may never end if Redis hangs
  };
  return { name, start: (pulse = steadyPulse(), rhythm = pulse) => void loop(pulse, rhythm), drain };
}

/** The same part, which works as often while the process is idle. Its work costs Redis little or nothing. */
export function evenIfIdle({ name, start, drain }: Part): Part {
  return { name, start: (pulse) => start?.(pulse, steadyPulse()), drain: () => drain?.() };
}
