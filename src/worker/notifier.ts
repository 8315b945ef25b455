import { moveCursor, type NumberedEvent, readCursor, readEvents } from '../ledger/outbox.ts';
import type { Log } from '../logger.ts';
import type { NamedReceiver } from '../notify/receivers.ts';
import { postEvent } from '../notify/webhook.ts';
import type { RedisClient } from '../redis/client.ts';
import { keys } from '../redis/keys.ts';
import { acquireLease, type Lease } from '../redis/lease.ts';
import { Backoff } from './backoff.ts';
import { type Part, repeat } from './parts.ts';

type NotifierOptions = {
  redis: RedisClient;
  fp: string;
  receiver: NamedReceiver;
  log: Log;
  /** Ms since 1970. */
  now: () => number;
  /** From 0 to 1. */
  random: () => number;
};

const checkEveryMs = 2_000;
const eventsAtOnce = 50;
const waits = { firstMs: 2_000, mostMs: 600_000 };
const triesOfRefused = 5;

/**
 * Posts the events of a target to one receiver, in their order. Of several workers with this receiver, the one that holds its lease posts;
 * the cursor moves after each event, so after a crash at most one is posted again, with the same id. A failure is tried again after 2 s to
 * 10 min, as long as the outbox has the event; one that the receiver refuses as such (400, 413, 422) is skipped after five tries.
 */
export class Notifier {
  readonly #options: NotifierOptions;
  readonly #stop = new AbortController();
  readonly #backoff: Backoff; // of the next event
  #refusals = { n: 0, count: 0 }; // in a row, of that event

  constructor(options: NotifierOptions) {
    this.#options = options;
    this.#backoff = new Backoff({ ...waits, random: options.random });
  }

  get part(): Part {
    const { receiver, log } = this.#options;
    return repeat(`notify ${receiver.label}`, checkEveryMs, () => this.post(), log, this.#stop);
  }

  /** Posts what the receiver has not got yet, until one fails. Throws where Redis does not answer. */
  async post(): Promise<void> {
    const { redis, fp, receiver, now } = this.#options;
    const { signal } = this.#stop;
    const isAnyNew = (await readEvents(redis, fp, await readCursor(redis, fp, receiver.key), 1)).length > 0;
    if (!isAnyNew || this.#backoff.isWaiting(now())) return;
    const lease = await acquireLease(redis, keys.outboxLease(fp, receiver.key), signal);
    if (lease === null) return;
    try {
      const after = await readCursor(redis, fp, receiver.key);
      for (const one of await readEvents(redis, fp, after, eventsAtOnce))
        if (lease.signal.aborted || !(await this.#postOne(one, lease))) return;
    } finally {
      await lease.release();
    }
  }

  /** Whether the next event may follow. */
  async #postOne({ n, event }: NumberedEvent, lease: Lease): Promise<boolean> {
    const { redis, fp, receiver, log, now } = this.#options;
    const { problem, isRefused } = await postEvent(receiver, event, now(), lease.signal);
    if (lease.signal.aborted && problem !== '') return false;
    this.#refusals = isRefused
      ? { n, count: (this.#refusals.n === n ? this.#refusals.count : 0) + 1 }
      : { n, count: 0 };
    const isSkipped = this.#refusals.count >= triesOfRefused;
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

  #noteFailure(reason: string): void {
    const { receiver, log, now } = this.#options;
    this.#backoff.failed(now());
    log[this.#backoff.logLevel]({ receiver: receiver.label, reason }, 'an event was not posted, trying again');
  }
}
