import { once } from 'node:events';
import { mkdtemp, readFile, writeFile } from 'node:fs/promises';
import { createConnection } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { startTarget, stopTarget } from '../../../src/ledger/steer-target.ts';
import { readProcesses, readStops } from '../../../src/limiter/stop.ts';
import { Pulse } from '../../../src/pulse.ts';
import type { RedisClient } from '../../../src/redis/client.ts';
import { keys } from '../../../src/redis/keys.ts';
import { protectionPart } from '../../../src/worker/protection-part.ts';
import { annotations, makeIds } from '../../support/ids.ts';
import { openLocalWorkers } from '../../support/local-workers.ts';
import { until } from '../../support/processes.ts';
import { testRedisAddress } from '../../support/redis.ts';

const soonMs = 1_500;
const neverMs = 3_600_000;
const ids = makeIds('i', 2);
const log = { debug() {}, info() {}, warn() {}, error() {} };

/** A worker whose minute without work only the test lets pass. `idleEveryMs`: how often it looks while it is idle. */
async function openIdleWorker(atEnd: (task: () => Promise<void>) => void, idleEveryMs: number) {
  let now = 0;
  const pulse = new Pulse({ clock: () => now, idleEveryMs });
  const workers = await openLocalWorkers(atEnd, { objects: annotations(ids) }, {}, pulse);
  const { redis, fp, service } = workers;
  await until('the worker has reported', async () => (await readStops(redis, fp)).alive === 1);
  const pass = () => {
    now += 60_000;
  };
  const idle = () =>
    until('the process says that it is idle', async () => {
      pass();
      return (await readProcesses(redis, fp))[0]?.restMs === idleEveryMs;
    });
  return { ...workers, service, pulse, pass, idle };
}

/**
 * Notes what is written to the keys of a target, as command, key and first field, until it is told to stop. By a plain socket: in a busy Redis the
 * client takes the first lines of MONITOR for answers.
 */
async function noteWrites(fp: string) {
  const { path, host, port, password } = testRedisAddress().options;
  const socket = path ? createConnection(path) : createConnection(port!, host);
  const writes: string[] = [];
  let rest = '';
  const note = (line: string) => {
    const [command = '', key = '', field = ''] = [...line.matchAll(/"((?:[^"\\]|\\.)*)"/g)].map(([, word]) => word!);
    if (!key.includes(fp) || !/^(hset|hincrby|set|incr|sadd|zadd|xadd|lpush|rpush)$/i.test(command)) return;
    writes.push(
      [command.toUpperCase(), key.split('}:')[1], /^hset|^hincr/i.test(command) ? field : ''].join(' ').trim(),
    );
  };
  socket.setEncoding('utf8').on('data', (text: string) => {
    const lines = (rest + text).split('\r\n');
    rest = lines.pop()!;
    for (const line of lines) note(line);
  });
  await once(socket, 'connect');
  socket.write(`${password ? `AUTH ${password}\r\n` : ''}MONITOR\r\n`);
  const stop = () => {
    socket.destroy();
    return writes;
  };
  return { writes, stop };
}

/** What a worker without work writes: that it is there. */
const signsOfLife = [/^HSET processes /, /^HSET limiter (seenAt|callsBy)$/];

const isOther = (write: string) => signsOfLife.every((sign) => !sign.test(write));

/** The writes after the last one that says more. */
function sinceOthers(writes: readonly string[]): readonly string[] {
  return writes.slice(writes.findLastIndex(isOther) + 1);
}

const heartbeats = (writes: readonly string[]) => writes.filter((write) => write.startsWith('HSET processes')).length;

describe('an idle worker', () => {
  /** @invariant idle-silence: A worker without work writes nothing to Redis but that it is there. */
  test('writes nothing that has not changed', async ({ onTestFinished }) => {
    const { fp, pass, submit, run } = await openIdleWorker(onTestFinished, soonMs);
    const id = await submit(ids);
    await until('the run has ended', async () => (await run(id)).state === 'completed');
    const { writes, stop } = await noteWrites(fp);
    await until('it has looked three times and written nothing else', async () => {
      pass();
      return heartbeats(sinceOthers(writes)) >= 3;
    });
    stop();
  });

  test('is not taken for one while it has had work within a minute', async ({ onTestFinished }) => {
    const { fp, pulse } = await openIdleWorker(onTestFinished, soonMs);
    const { writes, stop } = await noteWrites(fp);
    await until('it has looked five times', async () => heartbeats(writes) >= 5);
    expect(pulse.isIdle).toBe(false);
    expect(stop().filter(isOther)).toContain('HINCRBY witness looks');
  });

  test('starts with a new run at once', async ({ onTestFinished }) => {
    const { idle, pulse, submit, run } = await openIdleWorker(onTestFinished, neverMs);
    await idle();
    const id = await submit(ids);
    await until('the run has ended', async () => (await run(id)).state === 'completed');
    expect(pulse.isIdle).toBe(false);
  });

  test('learns of a stop and of its end, and of a run that has no job yet', async ({ onTestFinished }) => {
    const { redis, fp, idle, service, pulse } = await openIdleWorker(onTestFinished, neverMs);
    await idle();
    const ana = () => ({ who: 'ana', reason: 'enough', at: Date.now() });
    await stopTarget(redis, fp, ana());
    await until('it knows the stop', async () => service.sender.stop !== null);
    await idle();
    await startTarget(redis, fp, ana());
    await until('it knows that the stop is over', async () => service.sender.stop === null);
    await idle();
    await redis.incr(keys.schedulesRevision(fp));
    await until('it looks at the schedules', async () => !pulse.isIdle);
    await idle();
    await redis.sadd(keys.targetRuns(fp), 'later');
    await until('it looks for work', async () => !pulse.isIdle);
    await redis.srem(keys.targetRuns(fp), 'later');
  });

  test('is none while a run of its target needs workers', async ({ onTestFinished }) => {
    const { redis, pulse, pass, idle, submit } = await openIdleWorker(onTestFinished, soonMs);
    const id = await submit(ids, { startAt: Date.now() + neverMs });
    pass();
    expect(pulse.isIdle).toBe(true);
    await until('the run has woken it', async () => !pulse.isIdle);
    await redis.hset(keys.run(id), 'state', 'paused');
    await idle();
  });

  test('says which ids it protects soon after their file has changed, or Redis has lost them', async ({
    onTestFinished,
  }) => {
    const { redis, fp, idle, pulse } = await openIdleWorker(onTestFinished, neverMs);
    const path = join(await mkdtemp(join(tmpdir(), 'protected-')), 'ids.txt');
    await writeFile(path, 'kept-1');
    const read = async function* () {
      yield (await readFile(path, 'utf8')).split(' ');
    };
    const part = protectionPart({ redis, fp, path, read, log });
    onTestFinished(() => part.drain?.());
    part.start?.(pulse);
    const announces = (count: number) =>
      until(`it has announced ${count}`, async () => (await redis.strlen(keys.protection(fp))) === 8 * count);
    await announces(1);
    await idle();
    await writeFile(path, 'kept-1 kept-2');
    await announces(2);
    await writeFile(path, 'kept-1 kept-2 kept-3'); // its last look was already that of an idle process
    await announces(3);
    await redis.del(keys.protection(fp)); // as if Redis had lost it
    await announces(3);
    expect(pulse.isIdle).toBe(true);
  });

  test.for([
    ['of an idle one that is to call again', 30_000, 20_000, 1],
    ['of an idle one that has not called again', 30_000, 35_000, 0],
    ['of one with work', undefined, 20_000, 0],
  ] as const)('counts as alive by the call %s', async ([, restMs, agoMs, alive], { onTestFinished }) => {
    const { redis } = await openLocalWorkers(onTestFinished, {});
    const said = JSON.stringify({ stop: null, token: null, run: '', restMs });
    await noteProcess(redis, 'gone', Date.now() - agoMs, said);
    expect((await readStops(redis, 'gone')).alive).toBe(alive);
    await redis.del(keys.processes('gone'));
  });
});

function noteProcess(redis: RedisClient, fp: string, seenAt: number, said: string) {
  return redis.hset(keys.processes(fp), 'p', `${seenAt} ${said}`);
}
