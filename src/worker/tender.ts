import { randomUUID } from 'node:crypto';
import { anyRun, expireRun, noteCompleted } from '../ledger/end-run.ts';
import type { Ledger } from '../ledger/ledger.ts';
import { isSealed, type RunState, readRun, schemaVersion } from '../ledger/run.ts';
import { sealTally } from '../ledger/tally.ts';
import type { Log } from '../logger.ts';
import type { Feeder } from '../queue/feeder.ts';
import { redisWords, refusalWords } from '../redis/errors.ts';
import { keys } from '../redis/keys.ts';
import { lostWords, otherReleaseWords } from './chunk-handler.ts';

export type TenderOptions = { ledger: Ledger; feeder: Feeder; fp: string; log: Log };

const turnMs = 2_500;
const standsStillMs = 9_000;

/**
 * Keeps the runs of a target going: feeds what is due, puts back jobs the queue has lost, and does what follows a seal. One worker
 * of a target does it at a time; if two did, nothing would be added twice. A run with which that fails keeps no other one from its turn.
 */
export class Tender {
  readonly #options: TenderOptions;
  readonly #me = randomUUID();
  readonly #others = new Set<string>(); // runs of other releases, told of once
  readonly #troubles = new Map<string, string>(); // run → why it could not be tended, as told last
  readonly #restsUntil = new Map<string, number>(); // of runs that stand still

  constructor(options: TenderOptions) {
    this.#options = options;
  }

  /** One turn, if no other worker has it. */
  async tend(): Promise<void> {
    const { ledger, fp } = this.#options;
    const { redis } = ledger;
    if ((await redis.set(keys.tending(fp), this.#me, 'PX', turnMs, 'NX')) !== 'OK') return;
    const runs = await redis.smembers(keys.targetRuns(fp));
    for (const known of [this.#troubles, this.#restsUntil])
      for (const id of known.keys()) if (!runs.includes(id)) known.delete(id);
    for (const id of runs) {
      if ((this.#restsUntil.get(id) ?? 0) > Date.now()) continue;
      try {
        await this.#tendRun(id);
        this.#troubles.delete(id);
      } catch (error) {
        if (redis.status !== 'ready') throw error; // all others would fail alike
        this.#tell(id, error);
      }
    }
  }

  /** The same trouble comes with every turn, and is told once. That Redis refuses writes is told by those who delete. */
  #tell(id: string, error: unknown): void {
    const reason = redisWords(error);
    if (this.#troubles.get(id) === reason) return;
    this.#troubles.set(id, reason);
    const level = refusalWords(error) === '' ? 'warn' : 'debug';
    this.#options.log[level]({ run: id, reason }, 'the run could not be looked after, trying again');
  }

  /** A run that stands still is looked at now and then only: whoever lets it go on feeds it. */
  async #tendRun(id: string): Promise<void> {
    const { ledger, feeder } = this.#options;
    const [state, schema] = (await ledger.redis.hmget(keys.run(id), 'state', 'schema')) as [
      RunState | null,
      string | null,
    ];
    if (state === null) await this.#drop(id);
    else if (schema !== String(schemaVersion)) this.#leaveAlone(id);
    else if (state === 'running') await feeder.tend(id);
    else if (state === 'cancelling') await ledger.reclaim(id);
    else if (isSealed(state)) await this.#leave(id);
    else this.#restsUntil.set(id, Date.now() + standsStillMs);
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
  async #leave(id: string): Promise<void> {
    const { ledger, fp, log } = this.#options;
    const run = await readRun(ledger.redis, id);
    if (run === null) return;
    const sealed = await sealTally(ledger.redis, run);
    if (!sealed.isExpiring) await expireRun(ledger.redis, sealed);
    if (sealed.state === 'completed') await noteCompleted(ledger.redis, fp, anyRun, sealed.endedAt);
    await ledger.redis.srem(keys.targetRuns(fp), run.id);
    log.info({ run: run.id, state: run.state, counts: sealed.counts }, 'run ended');
  }
}
