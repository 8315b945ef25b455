import { describe, test } from 'vitest';
import { keys } from '../../src/redis/keys.ts';
import { openPrivateRedis } from '../../src/redis/private/open.ts';
import { privatePlace } from '../../src/redis/private/place.ts';
import { serverOnPath, serverPid } from '../../src/redis/private/server-process.ts';
import { unpackedServer } from '../../src/redis/private/unpack.ts';
import { aofBytes, truncateAof } from '../support/aof.ts';
import { findBroken } from '../support/checker.ts';
import { summaryIn } from '../support/command.ts';
import { type AtEnd, type Harness, type OwnRedis, openHarness } from '../support/harness.ts';
import { annotations, makeIds } from '../support/ids.ts';
import { describeLoss, loseTail } from '../support/lost-tail.ts';
import { type Running, until } from '../support/processes.ts';
import { makeStateDir, removeStateDir } from '../support/redis.ts';
import { startRedisProcess } from '../support/redis-process.ts';
import { isFull, sized } from '../support/size.ts';

const ids = makeIds('l', 600); // two chunks
const isThere = (_: string, n: number) => n % 5 !== 3;
const neverThere = ids.length / 5;
const few = ids.slice(0, 200);
const fewNeverThere = few.length / 5;
const bystanders = makeIds('b', 20);
const objects = annotations([...ids.filter(isThere), ...bystanders]);
const settings = {
  EXPUNGE_MAX_CONCURRENCY: '16',
  EXPUNGE_REQUEST_TIMEOUT_MS: '10000', // a machine that others use answers late
  EXPUNGE_RETRY_DELAYS: '100ms,100ms,100ms,100ms,100ms',
};
async function openLossScene(atEnd: AtEnd, own?: OwnRedis): Promise<Harness> {
  const harness = await openHarness(atEnd, { objects, latencyMs: 10 }, own);
  await harness.limit('600/s'); // it begins there, at once
  return harness;
}

function startWorker(harness: Harness): Promise<Running> {
  return harness.worker([], settings);
}

function run(harness: Harness, args: string[] = [], env: NodeJS.ProcessEnv = {}, list = ids): Running {
  const command = ['run', harness.list(list), '--resource', 'annotations', '--yes'];
  return harness.start([...command, ...args], { ...settings, ...env });
}

async function inTheMiddle(harness: Harness, requests = 100): Promise<void> {
  await until('the run is in the middle', () => harness.arrivals.length > requests);
}

async function findTrouble(harness: Harness): Promise<string | null> {
  return findBroken({ ...harness, run: await harness.onlyRun(), resource: 'annotations', ids, bystanders });
}

function isCompleted({ state }: { state: string }): boolean {
  return state === 'completed';
}

const tail = sized({ rounds: [1], ids: 1_000 }, { rounds: [1, 2, 3], ids: 20_000 });

describe('a Redis that comes back without the last tenth of what it had acknowledged', () => {
  test.for(tail.rounds)('costs certainty and nothing else, round %i', async (_, { expect, onTestFinished }) => {
    const seen = await loseTail({ ids: tail.ids, kills: isFull, atEnd: onTestFinished });
    console.log(describeLoss(seen));
    expect(seen.broken, describeLoss(seen)).toBeNull();
    expect(seen.isCut).toBe(true);
    if (isFull) expect(seen.forgotten).toBeGreaterThan(100);
    expect(seen.run).toMatchObject({ state: 'completed', doubt: expect.stringMatching(/^Redis was restarted/) });
  });

  test('would have deleted objects called absent if nobody noticed', async ({ expect, onTestFinished }) => {
    const seen = await loseTail({ ids: tail.ids, atEnd: onTestFinished, careless: true });
    expect(seen.broken, describeLoss(seen)).toMatch(/^"absent was never deleted by us" is broken/);
  });
});

describe.concurrent('a Redis that lost nothing', () => {
  test('leaves absent what never existed, where it flushes always', async ({ expect, onTestFinished }) => {
    const redis = await startRedisProcess(onTestFinished, { args: () => ['--appendfsync', 'always'] });
    const harness = await openLossScene(onTestFinished, { url: `redis://127.0.0.1:${redis.port}` });
    await startWorker(harness);
    await run(harness, ['--detach']).ended;
    await inTheMiddle(harness);
    await truncateAof(redis, aofBytes(redis));
    const { counts, doubt } = await harness.runIs('completed', isCompleted);
    expect(doubt).toBe('');
    expect(counts.absent + counts.gone_unconfirmed).toBeGreaterThanOrEqual(neverThere);
    expect(counts.gone_unconfirmed).toBeLessThanOrEqual(4 * 64); // what was marked in an update whose answer went down with it
    expect(await findTrouble(harness)).toBeNull();
  });

  test('is the private one after Ctrl-C: the same command goes on without doubt', async ({
    expect,
    onTestFinished,
  }) => {
    const { harness, env, stateDir } = await withPrivateRedis(onTestFinished);
    const stopped = run(harness, [], env, few);
    await inTheMiddle(harness);
    stopped.signal('SIGINT');
    expect((await stopped.ended).code, stopped.stderr).toBe(130);
    expect(serverPid(privatePlace(stateDir))).toBeNull();
    const resumed = run(harness, ['--json', '--expect-absent'], env, few);
    expect((await resumed.ended).code, resumed.stderr).toBe(0);
    const { absent, gone_unconfirmed } = summaryIn(resumed);
    expect({ absent, gone_unconfirmed }).toEqual({ absent: fewNeverThere, gone_unconfirmed: 0 });
  });

  test('is not the private one that was killed', async ({ expect, onTestFinished }) => {
    const { harness, env, stateDir } = await withPrivateRedis(onTestFinished);
    const stopped = run(harness, [], env, few);
    await inTheMiddle(harness);
    process.kill(serverPid(privatePlace(stateDir))!, 'SIGKILL');
    stopped.signal('SIGINT');
    expect((await stopped.ended).code, stopped.stderr).toBe(130);
    const resumed = run(harness, ['--json', '--expect-absent'], env, few);
    expect((await resumed.ended).code, resumed.stderr).toBe(0);
    const { absent, gone_unconfirmed, pending } = summaryIn(resumed);
    expect(pending).toBe(0);
    expect(absent).toBeLessThan(fewNeverThere);
    expect(absent + gone_unconfirmed).toBeGreaterThanOrEqual(fewNeverThere);
    expect(resumed.stderr).toContain('In doubt: Redis was restarted or replaced');
  });
});

describe.concurrent('a Redis that lost keys in the middle of a run', () => {
  test('halts it for a chunk, with words, until the chunk is back', async ({ expect, onTestFinished }) => {
    const harness = await openLossScene(onTestFinished);
    await run(harness, ['--detach']).ended;
    const { id } = await harness.onlyRun();
    const lost = keys.ledger(id, 1);
    const bytes = (await harness.redis.getBuffer(lost))!;
    await harness.redis.del(lost);
    await startWorker(harness);
    const halted = await harness.runIs('halted', ({ state }) => state === 'halted');
    expect(halted.reason).toBe('Redis has lost chunk 1 of it: bring its data back and resume, or cancel it');
    await harness.redis.set(lost, bytes);
    expect((await harness.expunge(['resume', id])).code).toBe(0);
    const ended = await harness.runIs('completed', isCompleted);
    expect(ended.doubt).toBe('Redis had lost a part of the run');
    expect(await findTrouble(harness)).toBeNull();
    expect((await harness.expunge(['status', id])).stdout).toMatch(
      / {2}in doubt since \d\d:\d\d:\d\d: Redis had lost a part of the run\n/,
    );
  });

  test('costs nothing where the ledger knows what they said', async ({ expect, onTestFinished }) => {
    const harness = await openLossScene(onTestFinished);
    await startWorker(harness);
    await run(harness, ['--detach']).ended;
    await inTheMiddle(harness);
    const { id } = await harness.onlyRun();
    await harness.redis.del(keys.open(id), keys.deferred(id));
    await harness.runIs('completed', isCompleted);
    expect(await findTrouble(harness)).toBeNull();
  });

  test('ends a run with exit 6, and a worker goes on with others, when all are flushed', async ({
    expect,
    onTestFinished,
  }) => {
    const redis = await startRedisProcess(onTestFinished);
    const harness = await openLossScene(onTestFinished, { url: `redis://127.0.0.1:${redis.port}` });
    const worker = await startWorker(harness);
    const here = run(harness, ['--account', 'another', '--rate', '30/s']);
    await inTheMiddle(harness, 20);
    await run(harness, ['--detach', '--expect-absent']).ended;
    await harness.runIs('in the middle', ({ settled }) => settled > 0);
    await harness.redis.flushall();
    expect((await here.ended).code, here.stderr).toBe(6);
    expect(here.stderr).toMatch(/Redis no longer knows it: .*\n.*the same command with --expect-absent/);
    await until('the worker leaves the run', () => worker.stderr.includes('skipping the run'));
    const other = harness.file('other.txt', `${bystanders.join('\n')}\n`);
    await harness.run([other, '--resource', 'annotations', '--yes', '--detach']);
    const goesOn = () => bystanders.every((id) => !harness.sandbox.exists('annotations', id));
    await until('the worker deletes what comes later', goesOn);
    expect(worker.isOver).toBe(false);
  });
});

/** A harness for commands that find a Redis of their own. */
async function withPrivateRedis(atEnd: AtEnd) {
  const harness = await openLossScene(atEnd);
  const stateDir = makeStateDir();
  atEnd(() => removeStateDir(stateDir));
  const { stay } = await openPrivateRedis(stateDir, process.env, () => {}, [serverOnPath, unpackedServer]);
  stay?.presence.disconnect(); // the commands find it, and start it again in the same way
  return { harness, stateDir, env: { REDIS_URL: '', EXPUNGE_STATE_DIR: stateDir, HOME: process.env.HOME } };
}
