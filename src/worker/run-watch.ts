import type { Redis } from 'ioredis';
import { Gate } from '../delete/gate.ts';
import { keys } from '../redis/keys.ts';

const everyMs = 100;

/**
 * Reads the states of the runs in hand ten times a second and keeps their gates. A run that isn't `running`, or of which Redis
 * said nothing for a second, has its gate closed. States: stopped → started → stopped.
 */
export class RunWatch {
  readonly #redis: Redis;
  readonly #clock: () => number;
  readonly #onClosed: () => void;
  readonly #gates = new Map<string, { gate: Gate; users: number }>();
  #timer: NodeJS.Timeout | null = null;
  #isAsking = false;

  /** `clock`: monotonic ms; `onClosed` is called after gates have closed. */
  constructor(redis: Redis, clock: () => number, onClosed: () => void) {
    this.#redis = redis;
    this.#clock = clock;
    this.#onClosed = onClosed;
  }

  start(): void {
    this.#timer = setInterval(() => void this.#look(), everyMs);
  }

  stop(): void {
    if (this.#timer) clearInterval(this.#timer);
    for (const { gate } of this.#gates.values()) gate.close();
  }

  /** The gate of a run for one more chunk; each `enter` needs one `leave`. */
  enter(run: string): Gate {
    const known = this.#gates.get(run);
    if (known !== undefined && !known.gate.closed.aborted) {
      known.users++;
      return known.gate;
    }
    const gate = new Gate(this.#clock);
    this.#gates.set(run, { gate, users: 1 });
    return gate;
  }

  leave(run: string, gate: Gate): void {
    const known = this.#gates.get(run);
    if (known?.gate === gate && --known.users === 0) this.#gates.delete(run);
  }

  /** Closes the gate of a run at once, before Redis is asked again. */
  close(run: string): void {
    this.#gates.get(run)?.gate.close();
    this.#onClosed();
  }

  async #look(): Promise<void> {
    for (const { gate } of this.#gates.values()) gate.closeIfStale();
    if (!this.#isAsking && this.#gates.size > 0) await this.#ask();
    if ([...this.#gates.values()].some(({ gate }) => gate.closed.aborted)) this.#onClosed();
  }

  async #ask(): Promise<void> {
    this.#isAsking = true;
    const askedAt = this.#clock();
    const asked = [...this.#gates];
    await Promise.all(
      asked.map(async ([run, { gate }]) => {
        const state = await this.#redis.hget(keys.run(run), 'state');
        if (state === 'running') gate.confirm(askedAt);
        else gate.close();
      }),
    ).catch(() => {}); // no answer: the gates close by themselves when their second is over
    this.#isAsking = false;
  }
}
