import { setTimeout as sleep } from 'node:timers/promises';

/** The result of the last reading: its number and its JSON, or why it could not be read. */
export type Edition = { id: number; event: string; text: string };

type LiveOptions<T> = {
  read(): Promise<T>;
  event: string; // the name of its server-sent events
  everyMs: number;
  /** Waits before the next reading. */
  wait?(ms: number): Promise<void>;
  /** Makes what viewers get if reading failed. */
  problem(error: unknown): object;
};

/**
 * Shares one reading among all viewers: about every `everyMs` while there are any, and none otherwise. A slow viewer misses editions, never delays
 * another viewer, and nothing is stored for it.
 */
export class Live<T> {
  readonly #options: LiveOptions<T>;
  #viewers = 0;
  #last: Edition | null = null;
  #lastAt = 0;
  #reading: Promise<Edition> | null = null;
  #lap: Promise<Edition> | null = null;

  constructor(options: LiveOptions<T>) {
    this.#options = options;
  }

  get viewers(): number {
    return this.#viewers;
  }

  /** The current edition, read again unless that was just done. */
  async current(): Promise<Edition> {
    if (this.#last !== null && performance.now() - this.#lastAt < this.#options.everyMs) return this.#last;
    return this.#read();
  }

  /** The editions from now on, the first at once unless it is `seen`; until `stop`. */
  async *follow(stop: AbortSignal, seen: number | null = null): AsyncGenerator<Edition> {
    this.#viewers += 1;
    try {
      const stopped = new Promise<null>((resolve) =>
        stop.addEventListener('abort', () => resolve(null), { once: true }),
      );
      let last = seen;
      for (let next = this.current(); !stop.aborted; next = this.#nextLap()) {
        const edition = await Promise.race([next, stopped]);
        if (edition === null || stop.aborted) return;
        if (edition.id !== last) yield edition;
        last = edition.id;
      }
    } finally {
      this.#viewers -= 1;
    }
  }

  /** Returns the next reading, which all viewers share. */
  #nextLap(): Promise<Edition> {
    this.#lap ??= this.#runLap().finally(() => {
      this.#lap = null;
    });
    return this.#lap;
  }

  async #runLap(): Promise<Edition> {
    const leftMs = this.#lastAt + this.#options.everyMs - performance.now();
    await (this.#options.wait ?? waitFor)(Math.max(0, leftMs));
    return this.#viewers > 0 || this.#last === null ? this.#read() : this.#last;
  }

  #read(): Promise<Edition> {
    this.#reading ??= this.#readNow().finally(() => {
      this.#reading = null;
    });
    return this.#reading;
  }

  /** Reads once. Never rejects: a viewer stays through an outage of Redis. */
  async #readNow(): Promise<Edition> {
    const { read, event, problem } = this.#options;
    const id = Math.max(Date.now(), (this.#last?.id ?? 0) + 1);
    try {
      this.#last = { id, event, text: JSON.stringify(await read()) };
    } catch (error) {
      this.#last = { id, event: 'problem', text: JSON.stringify(problem(error)) };
    }
    this.#lastAt = performance.now();
    return this.#last;
  }
}

async function waitFor(ms: number): Promise<void> {
  await sleep(ms, undefined, { ref: false });
}
