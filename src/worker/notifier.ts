import {
  moveCursor,
  type NumberedEvent,
  readCursor,
  readEvents,
  readRefusals,
  storeRefusals,
} from '../ledger/outbox.ts';
import type { Log } from '../logger.ts';
import type { NamedReceiver } from '../notify/receivers.ts';
import { postEvent } from '../notify/webhook.ts';
import type { RedisClient } from '../redis/client.ts';
import { keys } from '../redis/keys.ts';
import { acquireLease, type Lease } from '../redis/lease.ts';
import { sleepUntilAborted } from '../wait.ts';
import { Backoff, waitAfterMs } from './backoff.ts';
import { type Part, repeat } from './parts.ts';

type NotifierOptions = {
  redis: RedisClient;
  fp: string;
  receiver: NamedReceiver;
  log: Log;
  /** Returns ms since 1970. */
  now: () => number;
  /** Returns a number from 0 to 1. */
  random: () => number;
};

const checkEveryMs = 2_000;
const lookAgainMs = 200;
const eventsAtOnce = 50;
const waits = { firstMs: 2_000, maxMs: 600_000 };
const triesOfRefused = 5;

/**
 * Posts the events of a target to one receiver, in order. If several workers have this receiver, the holder of its lease posts. The cursor moves
 * after each event, so after a crash at most one event is posted again, with the same id. Each worker tries again 2 s to 10 min after a failure,
 * which may be due to its own network, for as long as the outbox has the event. If the receiver refuses an event as such (400, 413, 422), it is
 * skipped after five tries, counted over all workers, which share the waits between them.
 */
export class Notifier {
  readonly #options: NotifierOptions;
  readonly #stop = new AbortController();
  readonly #backoff: Backoff; // for the next event
  #problem = ''; // why the last post failed

  constructor(options: NotifierOptions) {
    this.#options = options;
    this.#backoff = new Backoff({ ...waits, random: options.random });
  }

  get part(): Part {
    const { receiver, log } = this.#options;
    return repeat(`notify ${receiver.label}`, checkEveryMs, () => this.post(), log, this.#stop);
  }

  /** Posts the events that the receiver has not taken yet, until one fails. Throws if Redis does not answer. */
  async post(): Promise<void> {
    const { redis, fp, receiver, now } = this.#options;
    const { signal } = this.#stop;
    const isAnyDue = (await this.#due(1)).length > 0;
    if (!isAnyDue || this.#backoff.isWaiting(now())) return;
    const lease = await acquireLease(redis, keys.outboxLease(fp, receiver.key), signal);
    if (lease === null) return;
    try {
      for (const one of await this.#due(eventsAtOnce))
        if (!lease.isHeld() || !(await this.#postOne(one, lease))) return;
    } finally {
      await lease.release();
    }
  }

  /**
   * Posts until the receiver has everything, which returns '', or until `signal` is aborted, which returns the reason for the delay. Throws if Redis
   * does not answer.
   */
  async finish(signal: AbortSignal): Promise<string> {
    const { redis, fp, receiver } = this.#options;
    const stop = () => this.#stop.abort();
    signal.addEventListener('abort', stop, { once: true });
    while (!signal.aborted) {
      await this.post();
      const cursor = await readCursor(redis, fp, receiver.key);
      if ((await readEvents(redis, fp, cursor, 1)).length === 0) return '';
      await sleepUntilAborted(lookAgainMs, signal);
    }
    return this.#problem || 'it does not answer in time';
  }

  /** The next events; none while the first of them waits because it was refused. */
  async #due(limit: number): Promise<NumberedEvent[]> {
    const { redis, fp, receiver, now } = this.#options;
    const events = await readEvents(redis, fp, await readCursor(redis, fp, receiver.key), limit);
    const { n, until } = await readRefusals(redis, fp, receiver.key);
    const leftMs = events[0]?.n === n ? until - now() : 0;
    return leftMs > 0 && leftMs <= waits.maxMs ? [] : events; // a longer wait comes from a clock that was wrong
  }

  /** Posts one event. Returns whether the next one may follow. */
  async #postOne({ n, event }: NumberedEvent, lease: Lease): Promise<boolean> {
    const { redis, fp, receiver, log, now } = this.#options;
    const { problem, isRefused } = await postEvent(receiver, event, now(), lease.signal);
    if (lease.signal.aborted && problem !== '') return false;
    const isSkipped = isRefused && (await this.#countRefusal(n)) >= triesOfRefused;
    if (problem !== '' && !isSkipped) {
      this.#noteFailure(problem);
      return false;
    }
    const facts = { receiver: receiver.label, event: event.id, type: event.type };
    if (isSkipped) log.error({ ...facts, reason: problem }, 'an event was refused and is not posted again');
    else log.debug(facts, 'event posted');
    this.#backoff.succeeded();
    await moveCursor(redis, fp, receiver.key, n);
    return true;
  }

  /** Counts this refusal. Returns how often the receiver has refused this event, including this time. */
  async #countRefusal(n: number): Promise<number> {
    const { redis, fp, receiver, now, random } = this.#options;
    const before = await readRefusals(redis, fp, receiver.key);
    const count = (before.n === n ? before.count : 0) + 1;
    const until = now() + waitAfterMs(waits, count, random());
    await storeRefusals(redis, fp, receiver.key, { n, count, until });
    return count;
  }

  #noteFailure(reason: string): void {
    const { receiver, log, now } = this.#options;
    this.#problem = reason;
    this.#backoff.failed(now());
    log[this.#backoff.logLevel]({ receiver: receiver.label, reason }, 'an event was not posted, trying again');
  }
}
