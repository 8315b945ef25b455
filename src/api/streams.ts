import type { Context } from 'hono';
import { streamSSE } from 'hono/streaming';
import type { Log } from '../logger.ts';
import type { Caller } from './access.ts';
import { Live } from './live.ts';
import { Problem, toProblem } from './problem.ts';

const maxStreams = 100; // of the 512 connections of the server; the others are for requests and probes
const maxStreamsOfOne = 10; // a page on screen has one
const maxDownloads = 8; // each reads a whole run from Redis
const maxUploads = 8; // each is read to the end, and then again
const maxSearches = 3; // each may read all runs of a target
const transferRetrySeconds = 10;
const streamMs = 3_600_000; // a viewer that reads nothing first fills the buffers of its connection, which may take this long
const everyMs = 1_000;
const retryMs = 2_000;
const checkEveryMs = 3_000;
const idleKept = 20;

/** Maximum numbers of concurrent streams, downloads, uploads and searches, and the duration of a stream. */
type StreamLimits = {
  streams: number;
  streamsOfOne: number;
  streamMs: number;
  downloads: number;
  uploads: number;
  searches: number;
};

const limits: StreamLimits = {
  streams: maxStreams,
  streamsOfOne: maxStreamsOfOne,
  streamMs,
  downloads: maxDownloads,
  uploads: maxUploads,
  searches: maxSearches,
};

/** The streams, downloads, uploads and searches of a process: their numbers, and one reading for all viewers of the same thing. */
export class Streams {
  readonly #log: Log;
  readonly #lives = new Map<string, Live<unknown>>();
  readonly #limits: StreamLimits;
  #open = 0;
  readonly #openOf = new Map<string, number>(); // by viewer
  readonly #transfers = { downloads: 0, uploads: 0, searches: 0 };

  constructor(log: Log, given: Partial<StreamLimits> = {}) {
    this.#log = log;
    this.#limits = { ...limits, ...given };
  }

  get open(): number {
    return this.#open;
  }

  /** The one reading of this name; it is dropped some time after the last viewer has left. */
  live(name: string, event: string, makeRead: () => () => Promise<unknown>): Live<unknown> {
    const known = this.#lives.get(name);
    if (known !== undefined) return known;
    const idle = [...this.#lives].filter(([, { viewers }]) => viewers === 0).map(([other]) => other);
    for (const other of idle.slice(0, Math.max(0, idle.length - idleKept))) this.#lives.delete(other);
    const problem = (error: unknown) => toProblem(error, this.#log, name);
    const live = new Live({ read: makeRead(), event, everyMs, problem });
    this.#lives.set(name, live);
    return live;
  }

  /**
   * Sends editions until the viewer leaves, an hour has passed, or `isAllowed`, which is checked from time to time, says no. Throws `unavailable` at
   * the cap for all callers, and `too_many` at the cap for one caller.
   */
  send(context: Context, live: Live<unknown>, caller: Caller, isAllowed: () => Promise<boolean>): Response {
    const { streamMs } = this.#limits;
    const end = this.#enter(`${caller.by === 'proxy' ? 'proxy' : 'own'} ${caller.name}`); // a token and its sessions count as one
    const seen = Number(context.req.header('last-event-id') ?? '') || null;
    return streamSSE(context, async (stream) => {
      const left = new AbortController();
      stream.onAbort(() => left.abort());
      const stop = AbortSignal.any([left.signal, AbortSignal.timeout(streamMs)]);
      stop.addEventListener('abort', () => stream.abort(), { once: true }); // also ends a stream that waits for its viewer to read
      let checkAt = performance.now() + checkEveryMs;
      try {
        for await (const { id, event, text } of live.follow(stop, seen)) {
          if (performance.now() >= checkAt) {
            if (!(await isAllowed().catch(() => true))) return; // while Redis is away, it cannot be checked
            checkAt = performance.now() + checkEveryMs;
          }
          await stream.writeSSE({ id: String(id), event, data: text, retry: retryMs });
        }
      } finally {
        end();
      }
    });
  }

  /** Counts a stream of a caller until the returned function is called. */
  #enter(who: string): () => void {
    const { streams, streamsOfOne } = this.#limits;
    const own = this.#openOf.get(who) ?? 0;
    const instead = ['ask for single answers instead', { seconds: Math.ceil(retryMs / 1_000) }] as const;
    if (own >= streamsOfOne) throw new Problem('too_many', `you have ${own} streams already`, ...instead);
    if (this.#open >= streams) throw new Problem('unavailable', `there are ${streams} streams already`, ...instead);
    this.#open += 1;
    this.#openOf.set(who, own + 1);
    return () => {
      this.#open -= 1;
      const left = this.#openOf.get(who)! - 1;
      if (left > 0) this.#openOf.set(who, left);
      else this.#openOf.delete(who);
    };
  }

  /** Begins one. The caller must call the returned function once, when it has ended in any way. Throws `unavailable` at the cap. */
  begin(what: 'downloads' | 'uploads' | 'searches'): () => void {
    const max = this.#limits[what];
    if (this.#transfers[what] >= max)
      throw new Problem('unavailable', `there are ${max} ${what} already`, 'try it again when one has ended', {
        seconds: transferRetrySeconds,
      });
    this.#transfers[what] += 1;
    return () => {
      this.#transfers[what] -= 1;
    };
  }
}
