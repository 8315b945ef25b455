import { randomUUID } from 'node:crypto';
import { wentWell } from '../ledger/conclusion.ts';
import { anyRun, expireRun, noteSuccess } from '../ledger/end-run.ts';
import type { Ledger } from '../ledger/ledger.ts';
import { awaitsResults, isDeliveryEnabled, queueResults, requestDelivery } from '../ledger/results.ts';
import { countPending, isFinalized, type RunState, readRun, schemaVersion } from '../ledger/run.ts';
import { toExitCode } from '../ledger/summary.ts';
import { finalizeTally, tallyIfFinalized } from '../ledger/tally.ts';
import type { Log } from '../logger.ts';
import type { Enqueuer } from '../queue/enqueuer.ts';
import { describeRedisError, describeRejection } from '../redis/errors.ts';
import { keys } from '../redis/keys.ts';
import { publishChanges } from './event-sources.ts';
import { lostReason, otherVersionReason } from './run-stopper.ts';

/** `dashboardUrl`: for links in events; missing or '' = not known. */
type RecovererOptions = { ledger: Ledger; enqueuer: Enqueuer; fp: string; dashboardUrl?: string | undefined; log: Log };

/** The fields of each run's record that the recoverer reads. */
const lookedAt = ['state', 'schema', 'resultsWanted', 'changes', 'published'] as const;
const leaseMs = 2_500;
const recheckIdleMs = 9_000;

/**
 * Recovers the detached runs of a target: enqueues due chunks, adds jobs again that the queue has lost, and tallies finalized runs. One worker of a
 * target does this at a time; two at once would add nothing twice. A run whose recovery fails does not delay the others.
 */
export class Recoverer {
  readonly #options: RecovererOptions;
  readonly #processId = randomUUID();
  readonly #otherVersionRuns = new Set<string>(); // runs of other versions, logged once
  readonly #lastErrors = new Map<string, string>(); // run → why it could not be recovered, as last logged
  readonly #missing = new Set<string>(); // runs without a record at the last look; a run that is being removed is not lost
  readonly #nextCheckAt = new Map<string, number>(); // for runs that are not running, by a clock that no one sets
  #isDeliveryEnabled = false;

  constructor(options: RecovererOptions) {
    this.#options = options;
  }

  /** Recovers each run once, unless another worker holds the lease. Throws if Redis does not answer. */
  async recover(): Promise<void> {
    const { ledger, fp } = this.#options;
    const { redis } = ledger;
    const runs = await redis.smembers(keys.targetRuns(fp));
    if (runs.length > 0 && (await redis.set(keys.recoverer(fp), this.#processId, 'PX', leaseMs, 'NX')) !== 'OK') return;
    this.#isDeliveryEnabled = runs.length > 0 && (await isDeliveryEnabled(redis, fp));
    for (const known of [this.#lastErrors, this.#nextCheckAt, this.#missing])
      for (const id of known.keys()) if (!runs.includes(id)) known.delete(id);
    for (const id of runs) {
      if ((this.#nextCheckAt.get(id) ?? 0) > performance.now()) continue;
      try {
        await this.#recoverRun(id);
        this.#lastErrors.delete(id);
      } catch (error) {
        if (redis.status !== 'ready') throw error; // the other runs would fail alike
        this.#logFailure(id, error);
      }
    }
  }

  /** Logs each error once, even if it comes back every time. The target sender logs rejected writes. */
  #logFailure(id: string, error: unknown): void {
    const reason = describeRedisError(error);
    if (this.#lastErrors.get(id) === reason) return;
    this.#lastErrors.set(id, reason);
    const level = describeRejection(error) === '' ? 'warn' : 'debug';
    this.#options.log[level]({ run: id, reason }, 'the run could not be recovered, trying again');
  }

  /** Recovers a run. A run that is not running is checked every 9 s only, because whatever resumes it also enqueues its chunks. */
  async #recoverRun(id: string): Promise<void> {
    const { ledger, enqueuer } = this.#options;
    const [state, schema, marked, changes, published] = (await ledger.redis.hmget(keys.run(id), ...lookedAt)) as [
      RunState | null,
      ...(string | null)[],
    ];
    if (this.#isDeliveryEnabled && marked === null && schema === String(schemaVersion))
      await requestDelivery(ledger.redis, id);
    if (state !== null && schema === String(schemaVersion) && changes !== published)
      await this.#publishChanges(id, { changes: Number(changes), published: Number(published) });
    if (state === null) await this.#dropLostRun(id);
    else if (schema !== String(schemaVersion)) this.#skipOtherVersion(id);
    else if (state === 'running') await enqueuer.recover(id);
    else if (state === 'cancelling') await ledger.reclaim(id);
    else if (isFinalized(state)) await this.#finishRun(id);
    else {
      if (state === 'halted') await this.#queueResults(id);
      this.#nextCheckAt.set(id, performance.now() + recheckIdleMs);
    }
  }

  /** Passes changes on. The counts of a finalized run are final once it is tallied. */
  async #publishChanges(id: string, published: { changes: number; published: number }): Promise<void> {
    const { redis } = this.#options.ledger;
    const run = await readRun(redis, id);
    if (run === null) return;
    if (run.state === 'running')
      this.#options.log.info({ run: id, ids: run.ids, left: countPending(run), target: run.baseUrl }, 'run started');
    // No process holds a chunk then, so no holder logs it.
    if (run.state === 'halted' && (run.halt === 'canary' || run.halt === 'max_deletes'))
      this.#options.log.error({ run: id, code: run.halt, reason: run.reason }, 'the run has halted');
    await publishChanges(redis, await tallyIfFinalized(redis, run), published, this.#options.dashboardUrl);
  }

  async #queueResults(id: string): Promise<void> {
    const { redis } = this.#options.ledger;
    const run = await readRun(redis, id);
    if (run !== null && awaitsResults(run)) await queueResults(redis, run);
  }

  async #dropLostRun(id: string): Promise<void> {
    if (!this.#missing.has(id)) return void this.#missing.add(id);
    const { ledger, fp, log } = this.#options;
    log.error({ run: id, reason: lostReason }, 'skipping the run');
    await ledger.redis.srem(keys.targetRuns(fp), id);
  }

  /** Skips a run that workers of the version that wrote it delete. */
  #skipOtherVersion(id: string): void {
    if (this.#otherVersionRuns.has(id)) return;
    this.#otherVersionRuns.add(id);
    this.#options.log.error({ run: id, reason: otherVersionReason }, 'skipping the run');
  }

  /** Tallies a finalized run and publishes its end. Repeating it after a crash is harmless: the run is removed from the set of its target last. */
  async #finishRun(id: string): Promise<void> {
    const { ledger, fp, log } = this.#options;
    const run = await readRun(ledger.redis, id);
    if (run === null) return;
    const finalized = await finalizeTally(ledger.redis, run);
    await expireRun(ledger.redis, finalized); // also for a run whose keys expire: they are kept longer until its end was passed on
    if (awaitsResults(finalized)) await queueResults(ledger.redis, finalized);
    if (wentWell(finalized)) await noteSuccess(ledger.redis, fp, anyRun, finalized.endedAt);
    await ledger.redis.srem(keys.targetRuns(fp), run.id);
    log.info({ run: run.id, state: run.state, exit: toExitCode(finalized), counts: finalized.counts }, 'run ended');
  }
}
