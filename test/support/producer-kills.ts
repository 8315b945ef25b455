import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import type { Redis } from 'ioredis';
import { openLedger } from '../../src/ledger/ledger.ts';
import { createEnqueuer } from '../../src/queue/enqueuer.ts';
import { openQueue } from '../../src/queue/queue.ts';
import { sharedQueueName } from '../../src/queue/queues.ts';
import { openQueueConnection } from '../../src/redis/connect.ts';
import { keys } from '../../src/redis/keys.ts';
import { type AtEnd, type Harness, openHarness } from './harness.ts';
import { makeIds } from './ids.ts';
import { until } from './processes.ts';
import { testRedisAddress } from './redis.ts';
import { openRedisProxy, type RedisProxy } from './redis-proxy.ts';

/** The list of every producer here: 5,000 ids in ten chunks, and rows that are settled while reading. */
const ids = makeIds('p', 5_000);
const lines = [...ids, ...ids.slice(0, 600), ...Array.from({ length: 30 }, (_, n) => `bad/${n}`)];

/** What a producer leaves in Redis, without names that differ from run to run. */
export type Planned = {
  runs: number;
  state: string;
  parts: Record<string, string>; // manifest, ledger and settled blocks in hex
  keys: string[];
  open: Record<string, string>;
  next: number;
  jobs: number;
  spools: string[];
};

/** An undisturbed producer, and how many commands it sends to Redis. */
export async function planUndisturbed(atEnd: AtEnd): Promise<{ planned: Planned; commands: number }> {
  const { harness, proxy } = await openProducer(atEnd);
  await submit(harness, proxy);
  const { commands } = proxy;
  return { planned: await readPlanned(harness), commands };
}

/** Kills a producer when it sends its `n`th command, before or after Redis has it, and starts the same command again. */
export async function planKilledAt(n: number, passOn: boolean, atEnd: AtEnd): Promise<Planned> {
  const { harness, proxy } = await openProducer(atEnd);
  const victim = harness.spawn(lineOf(harness), { REDIS_URL: proxy.url });
  proxy.onCommand = (command) => {
    if (command < n) return;
    victim.signal('SIGKILL');
    if (!passOn) proxy.cut();
  };
  const { signal } = await victim.ended;
  if (signal !== 'SIGKILL') throw new Error(`the producer ended before its command ${n}: ${victim.stderr}`);
  proxy.onCommand = () => {};
  proxy.restore();
  await submit(harness, proxy);
  return readPlanned(harness);
}

/** Kills a producer while it reads its list from a pipe that has not ended. */
export async function planKilledWhileReading(rows: number, atEnd: AtEnd): Promise<Planned> {
  const { harness, proxy } = await openProducer(atEnd);
  const pipe = new PassThrough();
  const args = ['run', '-', '--resource', 'annotations', '--detach', '--yes'];
  const victim = harness.spawn(args, { REDIS_URL: proxy.url }, pipe);
  pipe.write(`${lines.slice(0, rows).join('\n')}\n`);
  await until('the producer spools', () => spoolsIn(harness).length > 0);
  victim.signal('SIGKILL');
  await victim.ended;
  pipe.destroy();
  if (proxy.commands > 0) throw new Error('a producer that still reads has written to Redis');
  await submit(harness, proxy);
  return readPlanned(harness);
}

async function openProducer(atEnd: AtEnd): Promise<{ harness: Harness; proxy: RedisProxy }> {
  const harness = await openHarness(atEnd);
  const proxy = await openRedisProxy();
  atEnd(() => proxy.close());
  harness.list(lines);
  return { harness, proxy };
}

function lineOf(harness: Harness): string[] {
  return ['run', harness.list(lines), '--resource', 'annotations', '--detach', '--yes'];
}

async function submit(harness: Harness, proxy: RedisProxy): Promise<void> {
  const { code, stderr } = await harness.expunge(lineOf(harness), { env: { REDIS_URL: proxy.url } });
  if (code !== 0) throw new Error(`the producer failed: ${stderr}`);
}

/** What is there once a worker has come by: it makes the jobs that a producer enqueued and could not add any more. */
async function readPlanned(harness: Harness): Promise<Planned> {
  const { redis } = harness;
  await tend(harness);
  const [runs, run] = [await harness.runs(), await harness.onlyRun()];
  const parts: Record<string, string> = {};
  const names: string[] = [];
  for (const key of await keysOf(harness, `expunge:{${run.id}}:*`)) {
    const name = key.split(':').slice(2).join(':');
    names.push(name);
    if (/^[mos]:/.test(name)) parts[name] = (await redis.getBuffer(key))!.toString('hex');
  }
  return {
    runs: runs.length,
    state: run.state,
    parts,
    next: run.next,
    keys: names.sort(),
    open: await redis.hgetall(keys.open(run.id)),
    jobs: await countJobs(harness),
    spools: spoolsIn(harness),
  };
}

async function tend({ redis, target, onlyRun }: Harness): Promise<void> {
  const connection = openQueueConnection(testRedisAddress());
  const queue = openQueue({ fp: target.fp, name: sharedQueueName, connection });
  await createEnqueuer(openLedger(redis), queue).recover((await onlyRun()).id);
  await queue.close();
}

async function keysOf({ redis }: Harness, match: string): Promise<string[]> {
  const found: string[] = [];
  for await (const page of (redis as Redis).scanStream({ match, count: 1_000 })) found.push(...(page as string[]));
  return [...new Set(found)];
}

async function countJobs(harness: Harness): Promise<number> {
  return (await keysOf(harness, `${keys.queuePrefix(harness.target.fp)}:${sharedQueueName}:r*-c*`)).length;
}

function spoolsIn({ stateDir }: Harness): string[] {
  const folder = join(stateDir, 'spool');
  return existsSync(folder) ? readdirSync(folder) : [];
}
