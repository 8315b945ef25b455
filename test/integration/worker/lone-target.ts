import { randomUUID } from 'node:crypto';
import { settle } from '../../../src/ledger/cell.ts';
import { type Ledger, openLedger, type Steering } from '../../../src/ledger/ledger.ts';
import { readRun } from '../../../src/ledger/run.ts';
import { startRun } from '../../../src/ledger/start-run.ts';
import type { Log } from '../../../src/logger.ts';
import { codeOfStatus } from '../../../src/model/outcome.ts';
import { type Target, targetOf } from '../../../src/model/target.ts';
import type { Enqueuer } from '../../../src/queue/enqueuer.ts';
import type { RedisClient } from '../../../src/redis/client.ts';
import { keys } from '../../../src/redis/keys.ts';
import { Recoverer } from '../../../src/worker/recoverer.ts';
import type { AtEnd } from '../../support/harness.ts';
import { openTestRedis } from '../../support/redis.ts';
import { forgetKeys } from '../../support/redis-keys.ts';
import { claimChunk, forgetRun, writeTestRun } from '../ledger/lone-run.ts';

/** A target in Redis without processes. Its runs go on and end by calls of the ledger, and a recoverer looks at them when it is told to. */
export type LoneTarget = {
  redis: RedisClient;
  target: Target;
  fp: string;
  ledger: Ledger;
  /** What the log was told, line by line. */
  told: string[];
  log: Log;
  clock: { now: number };
  /** Writes a detached run of one chunk and starts it. */
  start(ids: number): Promise<string>;
  /** Settles so many more ids of a run as deleted, the last of which ends it. */
  settle(run: string, from: number, to: number): Promise<void>;
  steer(run: string, action: Steering['action'], reason?: string): Promise<void>;
  /** Looks after the runs once, as a worker does that has just started. */
  recover(): Promise<void>;
};

const by = { by: 'operator', who: 'ana@test' } as const;
const guard = { by: 'guard', who: '', halt: 'all_absent' } as const; // halts
const deleted = settle('deleted', 1, codeOfStatus(204));

export async function openLoneTarget(atEnd: AtEnd): Promise<LoneTarget> {
  const redis = await openTestRedis();
  const target = targetOf('http://127.0.0.1:9', randomUUID());
  const { fp } = target;
  const ledger = openLedger(redis);
  const told: string[] = [];
  const tell = (facts: object, message: string) => void told.push(`${message} ${JSON.stringify(facts)}`);
  const log: Log = { debug() {}, info: tell, warn: tell, error: tell };
  const runs: string[] = [];
  const enqueuer = { recover: async () => {} } as unknown as Enqueuer; // nobody waits for jobs
  atEnd(async () => {
    for (const run of runs) await forgetRun(redis, run);
    await forgetKeys(redis, `*${fp}*`);
    redis.disconnect();
  });
  return {
    redis,
    target,
    fp,
    ledger,
    told,
    log,
    clock: { now: Date.now() },
    start: async (ids) => {
      const run = await writeTestRun(redis, [ids], null, target);
      runs.push(run);
      await redis.sadd(keys.targetRuns(fp), run);
      await startRun(ledger, (await readRun(redis, run))!, { who: by.who, reason: '' });
      return run;
    },
    settle: async (run, from, to) => {
      await ledger.enqueue(run);
      const { epoch } = await claimChunk(ledger, run, 0);
      const results = Array.from({ length: to - from }, (_, n) => ({ index: from + n, cell: deleted }));
      await ledger.update({ run, chunk: 0, epoch, results });
    },
    steer: async (run, action, reason = '') => {
      const who = action === 'halt' ? guard : by;
      await ledger.steer(run, Date.now(), { action, reason, ...who });
    },
    recover: async () => {
      await redis.del(keys.recoverer(fp));
      await new Recoverer({ ledger, enqueuer, fp, log }).recover();
    },
  };
}
