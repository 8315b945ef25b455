import { setTimeout as sleep } from 'node:timers/promises';
import { type Run, readRun } from '../../src/ledger/run.ts';
import { setLimit } from '../../src/ledger/steer-target.ts';
import { parseRate } from '../../src/model/rate.ts';
import type { RedisClient } from '../../src/redis/client.ts';
import type { FaultTable } from '../../src/sandbox/faults.ts';
import { type AtEnd, type Harness, openHarness } from './harness.ts';
import { annotations, makeIds } from './ids.ts';
import { openOwnRedis } from './own-redis.ts';
import { openProbes, type Probes } from './probes.ts';
import { until } from './processes.ts';

export type Soak = { seconds: number; perSecond: number; atEnd: AtEnd };

/** What may not grow, at one moment: of both workers together, and of Redis. */
type Sample = { rssMb: number; fds: number; handles: number; keys: number; redisMb: number };

export type Soaked = {
  ids: number;
  runs: readonly Run[];
  /** Objects that still exist at the end. */
  remaining: number;
  /** Ids settled, as the metrics of the workers have it. */
  counted: number;
  /** Before the first run. */
  idle: Sample;
  /** Medians of the second fifth of the time, and of the last one. */
  early: Sample;
  late: Sample;
  /** Connections that the workers may have to the API. */
  lanes: number;
  words: string;
};

/** One request in a hundred or so. None is refused as one too many: the limiter would rightly slow down. */
const backgroundFaults: FaultTable = {
  'status-503': 0.004,
  'status-503-executed': 0.002,
  'status-409': 0.001,
  reset: 0.001,
  'reset-executed': 0.001,
  hang: 0.0005,
};

const connections = 32;
const workers = 2;
const ownKeys = 13; // of the target and its queue, whatever is deleted
const settings = {
  EXPUNGE_REQUEST_TIMEOUT_MS: '1000',
  EXPUNGE_RETRY_DELAYS: '500ms,1s,2s,4s,8s',
  EXPUNGE_MAX_CONCURRENCY: String(connections),
  NODE_OPTIONS: '--max-semi-space-size=4',
};

/** Runs one after another for two workers at a steady rate, with an outage, a frozen Redis and cut connections again and again. */
export async function soak({ seconds, perSecond, atEnd }: Soak): Promise<Soaked> {
  const lists = listsFor(seconds, perSecond);
  const api = { isOut: false };
  const faults: FaultTable = { ...backgroundFaults, script: () => (api.isOut ? 'status-503' : null) };
  const harness = await openHarness(atEnd, { objects: annotations(lists.flat()), record: false, faults });
  const own = await openOwnRedis(atEnd);
  const redis = own.connect();
  const env = { ...settings, REDIS_URL: own.url };
  const limit = parseRate(`${Math.ceil(1.25 * perSecond)}/s`);
  await setLimit(redis, harness.target.fp, limit, { who: 'test', reason: '', at: Date.now() });
  const start = () => harness.spawnWorker(['--http', '0'], env);
  const probes = await Promise.all(
    Array.from({ length: workers }, start).map(async (worker) => openProbes(await worker)),
  );
  const over = new AbortController();
  const startedAt = performance.now();
  const idle = await takeSample(redis, probes);
  const samples: Sample[] = [];
  let strikes = 0;
  const beside = [
    everyMs(Math.max(500, (1_000 * seconds) / 120), over.signal, async () => {
      samples.push(await takeSample(redis, probes));
    }),
    everyMs(Math.max(8_000, (1_000 * seconds) / 12), over.signal, () => strike(strikes++, api, redis, own.pid)),
  ];
  const runs = await deleteAll(harness, redis, lists, (1_000 * seconds) / lists.length, env);
  const isForgotten = async () => (await redis.dbsize()) < idle.keys + ownKeys;
  await until('Redis has forgotten the runs', isForgotten, 120_000);
  over.abort();
  await Promise.all(beside);
  const counted = (await Promise.all(probes.map(({ scrape }) => scrape()))).map((seen) =>
    seen.sum('expunge_items_total'),
  );
  const fifth = (n: number) => medianOf(samples.slice((samples.length * n) / 5, (samples.length * (n + 1)) / 5));
  const [early, late] = [fifth(1), fifth(4)];
  return {
    ids: lists.flat().length,
    runs,
    remaining: harness.sandbox.remaining(),
    counted: counted.reduce((sum, n) => sum + n, 0),
    idle,
    early,
    late,
    lanes: connections * workers,
    words: `${samples.length} samples in ${Math.round((performance.now() - startedAt) / 1_000)} s, ${strikes} strikes; idle ${textOf(idle)}; early ${textOf(early)}; late ${textOf(late)}`,
  };
}

function listsFor(seconds: number, perSecond: number): string[][] {
  const count = Math.max(12, Math.round(seconds / 30));
  return Array.from({ length: count }, (_, n) => makeIds(`s${n}`, Math.round((seconds * perSecond) / count)));
}

/** Submits a list each time the next one should be begun, two ahead at most, and returns the runs as they were when they were completed. */
async function deleteAll(
  harness: Harness,
  redis: RedisClient,
  lists: string[][],
  everyMs: number,
  env: NodeJS.ProcessEnv,
) {
  const startedAt = performance.now();
  const ended: Promise<Run>[] = [];
  for (const [n, list] of lists.entries()) {
    await Promise.all([sleep(Math.max(0, startedAt + n * everyMs - performance.now())), ended[n - 2]]);
    const file = harness.file(`list-${n}.txt`, `${list.join('\n')}\n`);
    const keep = `${Math.ceil(everyMs / 1_000)}s`;
    const id = await submit(harness, [file, '--keep', keep], env);
    ended.push(
      until(
        `run ${n} is completed`,
        async () => {
          const run = await readRun(redis, id).catch(() => null);
          return run?.state === 'completed' && run;
        },
        120_000 + 4 * everyMs,
      ),
    );
  }
  return Promise.all(ended);
}

/** Redis may be in trouble just then: the same command again goes on. */
async function submit(harness: Harness, args: string[], env: NodeJS.ProcessEnv): Promise<string> {
  return until('the run is submitted', async () => {
    const running = harness.spawn(['run', ...args, '--resource', 'annotations', '--yes', '--detach', '--json'], env);
    const { code } = await running.ended;
    return code === 0 && (JSON.parse(running.stdout.trimEnd().split('\n').at(-1)!).run as string);
  });
}

/** The connections are cut, Redis freezes, or the API is out for a moment. */
async function strike(n: number, api: { isOut: boolean }, redis: RedisClient, pid: number): Promise<void> {
  const kind = n % 3;
  if (kind === 0) await redis.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
  if (kind === 1) {
    process.kill(pid, 'SIGSTOP');
    await sleep(1_500);
    process.kill(pid, 'SIGCONT');
  }
  if (kind === 2) {
    api.isOut = true;
    await sleep(2_000);
    api.isOut = false;
  }
}

async function everyMs(ms: number, over: AbortSignal, task: () => Promise<unknown>): Promise<void> {
  while (!over.aborted) {
    await sleep(ms, undefined, { signal: over }).catch(() => {});
    if (!over.aborted) await task();
  }
}

async function takeSample(redis: RedisClient, probes: readonly Probes[]): Promise<Sample> {
  const seen = await Promise.all(probes.map(({ scrape }) => scrape()));
  const sum = (name: string) => seen.reduce((total, { value }) => total + value(name)!, 0);
  const used = Number(/used_memory:(\d+)/.exec(await redis.info('memory'))![1]);
  const dbSize = await redis.dbsize();
  return {
    rssMb: sum('process_resident_memory_bytes') / 1e6,
    fds: sum('process_open_fds'),
    handles: sum('nodejs_active_handles_total'),
    keys: dbSize,
    redisMb: used / 1e6,
  };
}

function medianOf(samples: readonly Sample[]): Sample {
  const median = (of: keyof Sample) => samples.map((sample) => sample[of]).sort((a, b) => a - b)[samples.length >> 1]!;
  return {
    rssMb: median('rssMb'),
    fds: median('fds'),
    handles: median('handles'),
    keys: median('keys'),
    redisMb: median('redisMb'),
  };
}

function textOf({ rssMb, fds, handles, keys, redisMb }: Sample): string {
  return `RSS ${rssMb.toFixed(0)} MB, ${fds} file descriptors, ${handles} handles, ${keys} keys, Redis ${redisMb.toFixed(1)} MB`;
}
