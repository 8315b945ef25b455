import type { Redis } from 'ioredis';
import { type AtEnd, openHarness } from './harness.ts';
import { annotations, makeIds } from './ids.ts';
import { openOwnRedis } from './own-redis.ts';
import { until } from './processes.ts';
import { takenIn } from './rate-measures.ts';
import { openRedisProxy } from './redis-proxy.ts';

export type FarRedis = {
  /** The round trip to Redis of each process, in ms. One process deletes in the command; several are workers. */
  roundTripsMs: readonly number[];
  /** The limit of the server. */
  perSecond: number;
  ids: number;
  runArgs?: readonly string[];
};

/** Deletes ids against a limit while Redis is far away, with real processes, and says what the server saw. `steady`: accepted a second in the second half of the run. */
export async function deleteFarAway(
  atEnd: AtEnd,
  { roundTripsMs, perSecond, ids: count, runArgs = [] }: FarRedis,
): Promise<{ settled: number; requests: number; refused: number; perSecond: number; steady: number; firstS: number }> {
  const ids = makeIds('far', count);
  const faults = { rate: { perSecond, retryAfter: 'seconds' } } as const;
  const harness = await openHarness(atEnd, { objects: annotations(ids), faults }, await openOwnRedis(atEnd));
  const ways = await Promise.all(roundTripsMs.map((ms) => openWay(atEnd, harness.redis as Redis, ms)));
  const isAlone = ways.length === 1;
  if (!isAlone) await Promise.all(ways.map((env) => harness.spawnWorker([], env)));
  const args = ['run', harness.list(ids), '--resource', 'annotations', '--yes', ...runArgs];
  const startedMs = performance.now();
  const running = harness.spawn(isAlone ? args : [...args, '--detach'], isAlone ? ways[0] : {});
  const isCompleted = async () => {
    if (running.isOver && (await running.ended).code !== 0) throw new Error(running.stderr);
    return (await harness.runs())[0]?.state === 'completed';
  };
  await until('the run is completed', isCompleted, 600_000);
  const { arrivals } = harness.sandbox;
  const [fromMs, toMs] = [arrivals.atMs[0]!, arrivals.atMs.at(-1)! + 1];
  const { requests, accepted, refused, seconds } = takenIn(arrivals, { fromMs, toMs });
  const { settled } = await harness.onlyRun();
  const at = (share: number) => arrivals.atMs[Math.floor(share * (requests - 1))]!;
  const late = takenIn(arrivals, { fromMs: at(0.5), toMs: at(0.9) });
  const steady = late.accepted / late.seconds;
  return { settled, requests, refused, perSecond: accepted / seconds, steady, firstS: (fromMs - startedMs) / 1_000 };
}

/** The environment of a process whose Redis is so far away. */
async function openWay(atEnd: AtEnd, { options }: Redis, roundTripMs: number): Promise<NodeJS.ProcessEnv> {
  const way = await openRedisProxy(options);
  way.roundTripMs = roundTripMs;
  atEnd(way.close);
  return { REDIS_URL: way.url };
}
