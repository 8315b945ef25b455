import type { Run } from '../../src/ledger/run.ts';
import { findBroken } from './checker.ts';
import { passed } from './fleet.ts';
import { type AtEnd, openHarness } from './harness.ts';
import { annotations, makeIds } from './ids.ts';
import { until } from './processes.ts';
import { openRedisProxy } from './redis-proxy.ts';
import { sized } from './size.ts';

export type RedisAway = {
  /** A run by itself, or a detached one with a worker, or with two under a supervisor, which are processes. */
  command: 'run' | 'worker' | 'workers';
  ms: number;
  atEnd: AtEnd;
};

export type RedisAwayResult = {
  /** Requests later than a second after Redis had gone. */
  sentWithout: number;
  /** From its return to the next request. */
  resumedAfterMs: number;
  run: Run;
  /** The promise that was broken, if any. */
  broken: string | null;
  /** Whether a process ended that should have gone on. */
  hasRestarted: boolean;
};

const ids = makeIds('r', sized(1_200, 3_000));
const bystanders = makeIds('b', 20);
const settings = { EXPUNGE_MAX_CONCURRENCY: '16' };

/** In the middle of a run Redis is gone for so long: what that costs. */
export async function measureRedisAway({ command, ms, atEnd }: RedisAway): Promise<RedisAwayResult> {
  const harness = await openHarness(atEnd, { objects: annotations([...ids, ...bystanders]), latencyMs: 20 });
  const proxy = await openRedisProxy();
  atEnd(() => proxy.close());
  const env = { ...settings, REDIS_URL: proxy.url };
  const args = ['run', harness.list(ids), '--resource', 'annotations', '--yes'];
  const start = {
    run: () => harness.start(args, env),
    worker: () => harness.worker([], env),
    workers: () => harness.spawnWorker(['--workers', '2'], env),
  };
  const running = await start[command]();
  if (command !== 'run') await harness.expunge([...args, '--detach']);
  await until('the run is in the middle', () => harness.arrivals.length > 300);
  proxy.cut();
  const goneAt = performance.now();
  await passed(goneAt, ms);
  const backAt = performance.now();
  proxy.restore();
  const firstAfter = () => harness.arrivals.find((at) => at > Math.max(backAt, goneAt + 1_000));
  const resumedAt = await until('requests leave again', firstAfter);
  const run = await harness.runIs('completed', ({ state }) => state === 'completed');
  const { code } = command === 'run' ? await running.ended : { code: 0 };
  return {
    sentWithout: harness.arrivals.filter((at) => at > goneAt + 1_000 && at < backAt).length,
    resumedAfterMs: resumedAt - backAt,
    run,
    broken: await findBroken({ ...harness, run, resource: 'annotations', ids, bystanders }),
    hasRestarted:
      code !== 0 || running.isOver !== (command === 'run') || running.stderr.includes('exited unexpectedly'),
  };
}

/** A run lost nothing when as many ids are gone as it had. */
export function lostIn({ counts }: Run): number {
  return ids.length - counts.deleted - counts.gone_unconfirmed;
}
