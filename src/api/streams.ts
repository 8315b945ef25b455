import type { Context } from 'hono';
import { streamSSE } from 'hono/streaming';
import type { Log } from '../logger.ts';
import { Live } from './live.ts';
import { Problem, problemOf } from './problem.ts';

const streamsAtMost = 100; // of the 512 connections of the server: the others are for requests and probes
const everyMs = 1_000;
const retryMs = 2_000;
const checkEveryMs = 3_000;
const idleKept = 20;

/** The streams of a process: how many there are, and one reading for all viewers of the same thing. */
export class Streams {
  readonly #log: Log;
  readonly #lives = new Map<string, Live<unknown>>();
  readonly #most: number;
  #open = 0;

  constructor(log: Log, most = streamsAtMost) {
    this.#log = log;
    this.#most = most;
  }

  get open(): number {
    return this.#open;
  }

  /** The one reading of this name; it is forgotten some time after the last viewer has left. */
  live(name: string, event: string, makeRead: () => () => Promise<unknown>): Live<unknown> {
    const known = this.#lives.get(name);
    if (known !== undefined) return known;
    const idle = [...this.#lives].filter(([, { viewers }]) => viewers === 0).map(([other]) => other);
    for (const other of idle.slice(0, Math.max(0, idle.length - idleKept))) this.#lives.delete(other);
    const problem = (error: unknown) => problemOf(error, this.#log, name);
    const live = new Live({ read: makeRead(), event, everyMs, problem });
    this.#lives.set(name, live);
    return live;
  }

  /** Sends editions until the viewer leaves or `isAllowed` says no, as it is asked now and then. Throws `unavailable` at the cap. */
  send(context: Context, live: Live<unknown>, isAllowed: () => Promise<boolean>): Response {
    if (this.#open >= this.#most)
      throw new Problem('unavailable', `there are ${this.#most} streams already`, 'ask for single answers instead');
    const seen = Number(context.req.header('last-event-id') ?? '') || null;
    this.#open += 1;
    return streamSSE(context, async (stream) => {
      const stop = new AbortController();
      stream.onAbort(() => stop.abort());
      let checkAt = performance.now() + checkEveryMs;
      try {
        for await (const { id, event, text } of live.follow(stop.signal, seen)) {
          if (performance.now() >= checkAt) {
            if (!(await isAllowed().catch(() => true))) return; // while Redis is away nobody can be asked
            checkAt = performance.now() + checkEveryMs;
          }
          await stream.writeSSE({ id: String(id), event, data: text, retry: retryMs });
        }
      } finally {
        this.#open -= 1;
      }
    });
  }
}
