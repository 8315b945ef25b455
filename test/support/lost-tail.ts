import { isFinalized, type Run } from '../../src/ledger/run.ts';
import { aofBytes, truncateAof } from './aof.ts';
import { findBroken } from './checker.ts';
import { type AtEnd, type Harness, openHarness } from './harness.ts';
import { annotations, makeIds } from './ids.ts';
import { type Running, without } from './processes.ts';
import { startRedisProcess } from './redis-process.ts';

export type LostTail = {
  ids: number;
  atEnd: AtEnd;
  /** Workers that are killed with SIGKILL and replaced, before and after the loss. */
  kills?: boolean;
  /** Workers that take the Redis that comes back for the one that went. */
  careless?: boolean;
};

export type LostTailResult = {
  /** The promise that was broken, if any. */
  broken: string | null;
  run: Run;
  /** Redis has lost the last that it had acknowledged. */
  isCut: boolean;
  /** Ids that had an outcome, and lost it; too few where workers settled others before it was looked. */
  forgotten: number;
  seconds: number;
};

const settings = {
  EXPUNGE_MAX_CONCURRENCY: '32',
  EXPUNGE_REQUEST_TIMEOUT_MS: '1000',
  EXPUNGE_RETRY_DELAYS: '200ms,200ms,200ms,200ms,200ms',
};
const lastWord = 'test:last-word';

/**
 * In the middle of a detached run with two workers Redis dies, loses the last tenth of its append-only file, and comes back. One id in ten
 * never existed.
 */
export async function loseTail({ ids: count, atEnd, kills, careless }: LostTail): Promise<LostTailResult> {
  const ids = makeIds('id', count);
  const bystanders = makeIds('bystander', 100);
  const objects = annotations([...ids.filter((_, n) => n % 10 !== 3), ...bystanders]);
  const redis = await startRedisProcess(atEnd);
  const harness = await openHarness(atEnd, { objects, latencyMs: 5 }, { url: `redis://127.0.0.1:${redis.port}` });
  await harness.limit('1500/s');
  const workers = await Promise.all([startWorker(harness, careless), startWorker(harness, careless)]);
  const from = performance.now();
  const rate = `${Math.min(1_500, count / 5)}/s`; // so that its middle cannot be missed, however late this process looks
  // Else the halt of ids that are not there in a row could notice in place of the doubt.
  const flags = ['--rate', rate, '--detach', '--yes', '--expect-absent'];
  await harness.spawn(['run', harness.list(ids), '--resource', 'annotations', ...flags], settings).ended;
  await harness.runIs('in the middle', ({ settled }) => settled > count / 2, 120_000);
  if (kills) await replace(harness, workers, 0);
  const { settled } = await harness.onlyRun();
  await harness.redis.set(lastWord, 'acknowledged');
  await truncateAof(redis, Math.floor(0.9 * aofBytes(redis)));
  const fallenBackTo = await harness.runIs('back', () => true);
  const isCut = (await harness.redis.exists(lastWord)) === 0;
  if (kills) await replace(harness, workers, 1);
  const run = await harness.runIs('over', ({ state }) => isFinalized(state), 600_000);
  const seconds = (performance.now() - from) / 1_000;
  const broken = await findBroken({ ...harness, run, resource: 'annotations', ids, bystanders });
  return { broken, run, isCut, forgotten: settled - fallenBackTo.settled, seconds };
}

function startWorker(harness: Harness, careless = false): Promise<Running> {
  return harness.spawnWorker([], { ...settings, ...(careless ? without('doubt') : {}) });
}

async function replace(harness: Harness, workers: Running[], n: number): Promise<void> {
  workers[n]!.signal('SIGKILL');
  await workers[n]!.ended;
  workers[n] = await startWorker(harness);
}

/** What a loss came to, on one line. */
export function describeLoss({ run, forgotten, seconds }: LostTailResult): string {
  const { deleted, absent, gone_unconfirmed, unknown, failed } = run.counts;
  const outcomes = `${deleted} deleted, ${absent} absent, ${gone_unconfirmed} gone_unconfirmed, ${unknown} unknown, ${failed} failed`;
  return `${run.rows} ids, ${forgotten} outcomes forgotten, ${seconds.toFixed(1)} s: ${outcomes}`;
}
