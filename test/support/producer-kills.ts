import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import type { Redis } from 'ioredis';
import { openLedger } from '../../src/ledger/ledger.ts';
import { haltRules } from '../../src/ledger/thresholds.ts';
import { createFeeder } from '../../src/queue/feeder.ts';
import { openQueue, sharedQueueName } from '../../src/queue/queue.ts';
import { openQueueConnection } from '../../src/redis/connect.ts';
import { keys } from '../../src/redis/keys.ts';
import { until } from './processes.ts';
import { testRedisAddress } from './redis.ts';
import { openRedisProxy, type RedisProxy } from './redis-proxy.ts';
import { makeIds, openScene, type Scene } from './scene.ts';

type AtEnd = Parameters<typeof openScene>[0];

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
  const { scene, proxy } = await openStage(atEnd);
  await submit(scene, proxy);
  const { commands } = proxy;
  return { planned: await lookAt(scene), commands };
}

/** Kills a producer when it sends its `n`th command, before or after Redis has it, and starts the same command again. */
export async function planKilledAt(n: number, passOn: boolean, atEnd: AtEnd): Promise<Planned> {
  const { scene, proxy } = await openStage(atEnd);
  const victim = start(scene, proxy);
  proxy.onCommand = (command) => {
    if (command < n) return;
    victim.signal('SIGKILL');
    if (!passOn) proxy.cut();
  };
  const { signal } = await victim.ended;
  if (signal !== 'SIGKILL') throw new Error(`the producer ended before its command ${n}: ${victim.stderr}`);
  proxy.onCommand = () => {};
  proxy.restore();
  await submit(scene, proxy);
  return lookAt(scene);
}

/** Kills a producer while it reads its list from a pipe that has not ended. */
export async function planKilledWhileReading(rows: number, atEnd: AtEnd): Promise<Planned> {
  const { scene, proxy } = await openStage(atEnd);
  const pipe = new PassThrough();
  const args = ['run', '-', '--resource', 'annotations', '--detach', '--yes'];
  const victim = scene.expunge(args, { REDIS_URL: proxy.url }, pipe);
  pipe.write(`${lines.slice(0, rows).join('\n')}\n`);
  await until('the producer spools', () => spoolsIn(scene).length > 0);
  victim.signal('SIGKILL');
  await victim.ended;
  pipe.destroy();
  if (proxy.commands > 0) throw new Error('a producer that still reads has written to Redis');
  await submit(scene, proxy);
  return lookAt(scene);
}

async function openStage(atEnd: AtEnd): Promise<{ scene: Scene; proxy: RedisProxy }> {
  const scene = await openScene(atEnd);
  const proxy = await openRedisProxy();
  atEnd(() => proxy.close());
  scene.list(lines);
  return { scene, proxy };
}

function start(scene: Scene, proxy: RedisProxy) {
  const args = ['run', scene.list(lines), '--resource', 'annotations', '--detach', '--yes'];
  return scene.expunge(args, { REDIS_URL: proxy.url });
}

async function submit(scene: Scene, proxy: RedisProxy): Promise<void> {
  const running = start(scene, proxy);
  const { code } = await running.ended;
  if (code !== 0) throw new Error(`the producer failed: ${running.stderr}`);
}

/** What is there once a worker has come by: it makes the jobs that a producer fed and could not add any more. */
async function lookAt(scene: Scene): Promise<Planned> {
  const { redis } = scene;
  await tend(scene);
  const [runs, run] = [await scene.runs(), await scene.run()];
  const parts: Record<string, string> = {};
  const names: string[] = [];
  for (const key of await keysOf(scene, `expunge:{${run.id}}:*`)) {
    const name = key.split(':').slice(2).join(':');
    names.push(name);
    if (/^[mos]:/.test(name)) parts[name] = (await redis.getBuffer(key))!.toString('hex');
  }
  return {
    ...{ runs: runs.length, state: run.state, parts, next: run.next, keys: names.sort() },
    open: await redis.hgetall(keys.open(run.id)),
    jobs: await countJobs(scene),
    spools: spoolsIn(scene),
  };
}

async function tend({ redis, target, run }: Scene): Promise<void> {
  const connection = openQueueConnection(testRedisAddress());
  const queue = openQueue({ fp: target.fp, name: sharedQueueName, connection });
  await createFeeder(openLedger(redis, haltRules), queue).tend((await run()).id);
  await queue.close();
}

async function keysOf({ redis }: Scene, match: string): Promise<string[]> {
  const found: string[] = [];
  for await (const page of (redis as Redis).scanStream({ match, count: 1_000 })) found.push(...(page as string[]));
  return [...new Set(found)];
}

async function countJobs(scene: Scene): Promise<number> {
  return (await keysOf(scene, `${keys.queuePrefix(scene.target.fp)}:${sharedQueueName}:r*-c*`)).length;
}

function spoolsIn({ stateDir }: Scene): string[] {
  const folder = join(stateDir, 'spool');
  return existsSync(folder) ? readdirSync(folder) : [];
}
