import { randomUUID } from 'node:crypto';
import { anyRun, noteCompleted } from '../ledger/completed.ts';
import type { Ledger } from '../ledger/ledger.ts';
import { expireRun } from '../ledger/remove-run.ts';
import { isSealed, type Run, readRun, schemaVersion } from '../ledger/run.ts';
import { sealTally } from '../ledger/tally.ts';
import type { Log } from '../logger.ts';
import type { Feeder } from '../queue/feeder.ts';
import { keys } from '../redis/keys.ts';
import { lostWords, otherReleaseWords } from './stop-runs.ts';

export type TenderOptions = { ledger: Ledger; feeder: Feeder; fp: string; log: Log };

const turnMs = 2_500;

/**
 * Keeps the runs of a target going: feeds what is due, puts back jobs the queue has lost, and does what follows a seal. One worker
 * of a target does it at a time; if two did, nothing would be added twice.
 */
export class Tender {
  readonly #options: TenderOptions;
  readonly #me = randomUUID();
  readonly #others = new Set<string>(); // runs of other releases, told of once

  constructor(options: TenderOptions) {
    this.#options = options;
  }

  /** One turn, if no other worker has it. */
  async tend(): Promise<void> {
    const { ledger, fp } = this.#options;
    const { redis } = ledger;
    if ((await redis.set(keys.tending(fp), this.#me, 'PX', turnMs, 'NX')) !== 'OK') return;
    for (const id of await redis.smembers(keys.targetRuns(fp))) await this.#tendRun(id);
  }

  async #tendRun(id: string): Promise<void> {
    const { ledger, feeder } = this.#options;
    const run = await readRun(ledger.redis, id);
    if (run === null) await this.#drop(id);
    else if (run.schema !== schemaVersion) this.#leaveAlone(id);
    else if (isSealed(run.state)) await this.#leave(run);
    else if (run.state === 'cancelling') await ledger.reclaim(id);
    else await feeder.tend(id);
  }

  async #drop(id: string): Promise<void> {
    const { ledger, fp, log } = this.#options;
    log.error({ run: id, reason: lostWords }, 'leaving the run');
    await ledger.redis.srem(keys.targetRuns(fp), id);
  }

  /** Workers of the release that wrote the run see to it. */
  #leaveAlone(id: string): void {
    if (this.#others.has(id)) return;
    this.#others.add(id);
    this.#options.log.error({ run: id, reason: otherReleaseWords }, 'leaving the run');
  }

  /** What follows a seal. Repeating it after a crash is harmless; the run leaves the list last. */
  async #leave(run: Run): Promise<void> {
    const { ledger, fp, log } = this.#options;
    const sealed = await sealTally(ledger.redis, run);
    if (!sealed.isExpiring) await expireRun(ledger.redis, sealed);
    if (sealed.state === 'completed') await noteCompleted(ledger.redis, fp, anyRun, sealed.endedAt);
    await ledger.redis.srem(keys.targetRuns(fp), run.id);
    log.info({ run: run.id, state: run.state, counts: sealed.counts }, 'run ended');
  }
}
