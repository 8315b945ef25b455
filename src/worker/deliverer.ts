import { hostname } from 'node:os';
import { ExpungeError, messageOf } from '../errors.ts';
import { expireRun } from '../ledger/end-run.ts';
import {
  announceResults,
  awaitsResults,
  dropUndelivered,
  nameEnd,
  readUndelivered,
  recordResults,
  recordResultsProblem,
  requeueResults,
  type Undelivered,
} from '../ledger/results.ts';
import { isFinalized, type Run, readRun, schemaVersion } from '../ledger/run.ts';
import { tallyIfFinalized } from '../ledger/tally.ts';
import type { Log } from '../logger.ts';
import type { RedisClient } from '../redis/client.ts';
import { describeRedisError, isRedisError } from '../redis/errors.ts';
import { keys } from '../redis/keys.ts';
import { acquireLease, type Lease } from '../redis/lease.ts';
import type { Destination } from '../results/destination.ts';
import { Backoff } from './backoff.ts';
import { type Part, repeat } from './parts.ts';

type DelivererOptions = {
  redis: RedisClient;
  fp: string;
  destination: Destination;
  log: Log;
  /** Returns ms since 1970. */
  now: () => number;
  /** Returns a number from 0 to 1. */
  random: () => number;
};

const checkEveryMs = 3_000;
const waits = { firstMs: 2_000, maxMs: 300_000 };
const problemLength = 300;

/**
 * Delivers the results of a target's detached runs that have ended, one run after the other. Any number of workers can do this. The holder of a run's
 * lease delivers the run. If a worker dies halfway, the next one starts over. After a failure, this process tries the run again after 2 s to 5 min;
 * other runs and deletions do not wait for it.
 */
export class Deliverer {
  readonly #options: DelivererOptions;
  readonly #stop = new AbortController();
  readonly #backoffs = new Map<string, Backoff>(); // by run

  constructor(options: DelivererOptions) {
    this.#options = options;
  }

  get part(): Part {
    return repeat('results', checkEveryMs, () => this.deliver(), this.#options.log, this.#stop);
  }

  /** Delivers the results of each run that has ended, once. Throws if Redis does not answer. */
  async deliver(): Promise<void> {
    const { redis, fp, now } = this.#options;
    await announceResults(redis, fp);
    const waiting = await readUndelivered(redis, fp);
    for (const run of this.#backoffs.keys()) if (!waiting.some((one) => one.run === run)) this.#backoffs.delete(run);
    for (const one of waiting) {
      if (this.#stop.signal.aborted) return;
      if (!this.#backoffs.get(one.run)?.isWaiting(now())) await this.#tryOne(one);
    }
  }

  /** Tries to deliver one run. Throws if Redis does not answer, because the other runs would fail alike. */
  async #tryOne(one: Undelivered): Promise<void> {
    const { redis } = this.#options;
    try {
      await this.#deliverOne(one);
    } catch (error) {
      if (redis.status !== 'ready') throw error;
      this.#backOff(one.run, describeRedisError(error));
    }
  }

  async #deliverOne(one: Undelivered): Promise<void> {
    const { redis } = this.#options;
    if (!(await this.#isWaiting(one))) return;
    const lease = await acquireLease(redis, keys.resultsLease(one.run), this.#stop.signal);
    if (lease === null) return;
    try {
      // Another worker may have delivered it since the look, before this process got the lease.
      if (await this.#isWaiting(one)) await this.#deliverLeased(one, lease);
    } finally {
      await lease.release();
    }
  }

  /**
   * Whether the run still waits. A run that is gone, has resumed or is delivered does not, and is removed from the queue. A run of another version is
   * left to that version.
   */
  async #isWaiting(one: Undelivered): Promise<boolean> {
    const { redis, fp } = this.#options;
    const run = await readRun(redis, one.run);
    if (run !== null && run.schema !== schemaVersion) return false;
    if (run !== null && awaitsResults(run)) return true;
    if (run !== null && isFinalized(run.state)) await expireRun(redis, run);
    await dropUndelivered(redis, fp, one);
    return false;
  }

  async #deliverLeased(one: Undelivered, lease: Lease): Promise<void> {
    const { redis, destination, log, now } = this.#options;
    const found = await readRun(redis, one.run);
    if (found === null || !awaitsResults(found)) return;
    const run = await tallyIfFinalized(redis, found);
    try {
      const place = await destination.deliver(redis, run, lease);
      const delivered = { end: nameEnd(run), at: now(), place, by: hostname() };
      if ((await recordResults(redis, run.id, lease.token, delivered)) === 'done') {
        log.info({ run: run.id, state: run.state, results: place }, 'results delivered');
        this.#backoffs.delete(run.id);
        await this.#isWaiting(one);
        return;
      }
    } catch (error) {
      if (lease.isHeld()) {
        if (isRedisError(error)) throw error;
        await this.#noteFailure(run, lease, error);
      }
    }
    // Only Redis knows who had the lease: a machine that stops also stops its clock, and `isHeld` is also false in a process that ends.
    await requeueResults(redis, run.id, lease.token);
  }

  async #noteFailure(run: Run, lease: Lease, error: unknown): Promise<void> {
    const { redis, destination } = this.#options;
    const said = messageOf(error).slice(0, problemLength);
    const reason =
      error instanceof ExpungeError || said.includes(destination.label) ? said : `${destination.label}: ${said}`;
    this.#backOff(run.id, reason);
    await recordResultsProblem(redis, run.id, lease.token, reason);
  }

  #backOff(run: string, reason: string): void {
    const { log, now, random } = this.#options;
    const backoff = this.#backoffs.get(run) ?? new Backoff({ ...waits, random });
    this.#backoffs.set(run, backoff);
    backoff.failed(now());
    log[backoff.logLevel]({ run, reason }, 'the results of a run were not delivered, trying again');
  }
}
