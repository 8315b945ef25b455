import { describe, expect, test, vi } from 'vitest';
import { openLedger } from '../../../src/ledger/ledger.ts';
import { readRun } from '../../../src/ledger/run.ts';
import { startRun } from '../../../src/ledger/start-run.ts';
import type { Log } from '../../../src/logger.ts';
import { targetOf } from '../../../src/model/target.ts';
import { sharedQueueName } from '../../../src/queue/queues.ts';
import { addressFromUrl } from '../../../src/redis/address.ts';
import { parseInfo } from '../../../src/redis/boot-check.ts';
import { closeQueueConnection, openQueueConnection } from '../../../src/redis/connect.ts';
import { keys } from '../../../src/redis/keys.ts';
import { startSandbox } from '../../../src/sandbox/server.ts';
import { fixedToken } from '../../../src/token/fixed-token.ts';
import { Parts } from '../../../src/worker/parts.ts';
import { Recoverer } from '../../../src/worker/recoverer.ts';
import { openService } from '../../../src/worker/service.ts';
import { startCommand } from '../../support/command.ts';
import { openOwnRedis } from '../../support/own-redis.ts';
import { until } from '../../support/processes.ts';
import { openLedgerOn } from '../../support/redis.ts';
import { writeTestRun } from '../ledger/lone-run.ts';

type AtEnd = Parameters<typeof openOwnRedis>[0];
type Told = { message: string; run?: string; reason?: string };

const usualSizes = [3, 3, 3, 3, 3, 3];
const idsOfRun = 18;
const by = { who: 'test', reason: '' };

/** A worker in this process, with a Redis and an API of its own. Its parts are not started, and it tends when it is told to. */
async function openStage(atEnd: AtEnd) {
  const own = await openOwnRedis(atEnd);
  const sandbox = await startSandbox();
  const address = addressFromUrl(own.url, false);
  const redis = await openLedgerOn(address);
  const queueConnection = openQueueConnection(address);
  const told: Told[] = [];
  const tell = (facts: object, message: string) => void told.push({ ...facts, message });
  const log: Log = { debug() {}, info: tell, warn: tell, error: tell };
  const target = targetOf(sandbox.url, '');
  const ledger = openLedger(redis);
  const service = openService({
    ledger,
    target,
    log,
    queueConnection,
    queueName: sharedQueueName,
    token: fixedToken(sandbox.token, 'a test'),
    connection: { requestTimeoutMs: 500, ca: null, proxy: null },
    maxConcurrency: 8,
    retryDelaysMs: [1, 1, 1, 1, 1],
    unreachableTimeoutMs: 60_000,
    stopFile: null,
  });
  const recoverer = new Recoverer({ ledger, enqueuer: service.enqueuer, fp: target.fp, log });
  const signal = new AbortController().signal;
  let parts = new Parts([], log);
  atEnd(async () => {
    await parts.drain();
    closeQueueConnection(queueConnection);
    redis.disconnect();
    await sandbox.close();
  });
  const make = async (state: 'running' | 'paused' | 'halted', sizes = usualSizes) => {
    const run = await writeTestRun(redis, sizes, null, target);
    await redis.sadd(keys.targetRuns(target.fp), run);
    await startRun(ledger, (await readRun(redis, run))!, by);
    if (state === 'running') return run;
    await ledger.enqueue(run);
    const action = state === 'paused' ? 'pause' : 'halt';
    await ledger.steer(run, Date.now(), { action, by: 'operator', ...by });
    return run;
  };
  const turn = async () => {
    await redis.del(keys.recoverer(target.fp));
    await recoverer.recover();
  };
  const start = () => {
    parts = new Parts(service.parts, log);
    return parts.start(signal);
  };
  const tended = async (run: string) => (await redis.hlen(keys.open(run))) > 0;
  return { own, redis, target, told, make, turn, start, tended };
}

describe('a worker that recovers the runs of its target', () => {
  test('goes on with the others where it fails with one, and names that one once', async ({ onTestFinished }) => {
    const { redis, target, told, make, turn, tended } = await openStage(onTestFinished);
    const runs = await Promise.all(Array.from({ length: 4 }, () => make('running')));
    const [broken, next, ...others] = (await redis.smembers(keys.targetRuns(target.fp))) as [
      string,
      string,
      ...string[],
    ];
    expect(others).toHaveLength(runs.length - 2);
    await redis.set(keys.open(broken), 'no hash');
    await turn();
    for (const run of [next, ...others]) expect(await tended(run)).toBe(true);
    await turn();
    const named = () => told.filter(({ run, message }) => run === broken && message !== 'run started');
    expect(named()).toMatchObject([{ reason: expect.stringContaining('WRONGTYPE') }]);
    await redis.del(keys.open(broken));
    await turn();
    expect(await tended(broken)).toBe(true);
    expect(named()).toHaveLength(1);
    await redis.set(keys.run(broken), 'no hash'); // it cannot be read at all
    await turn();
    expect(named()).toHaveLength(2);
  });

  test('asks Redis for nothing of runs that stand still, but every nine seconds', async ({ onTestFinished }) => {
    const { own, make, turn } = await openStage(onTestFinished);
    await Promise.all(Array.from({ length: 60 }, (_, n) => make(n % 2 === 0 ? 'paused' : 'halted')));
    let now = performance.now();
    vi.spyOn(performance, 'now').mockImplementation(() => now);
    onTestFinished(() => void vi.restoreAllMocks());
    const admin = own.connect();
    const count = async () => Number(parseInfo(await admin.info('stats')).total_commands_processed);
    const commandsOfTurn = async () => {
      const before = await count();
      await turn();
      return (await count()) - before;
    };
    await turn(); // their changes of state are passed on once
    expect(await commandsOfTurn()).toBeLessThan(10);
    now += 9_001;
    expect(await commandsOfTurn(), 'negative control').toBeGreaterThan(60);
    expect(await commandsOfTurn()).toBeLessThan(10);
  });

  test('looks at a resumed run in time, though the clock of its machine was set back meanwhile', async ({
    onTestFinished,
  }) => {
    const { redis, make, turn, tended } = await openStage(onTestFinished);
    const run = await make('paused');
    const [now, passed] = [Date.now.bind(Date), performance.now.bind(performance)];
    const clock = vi.spyOn(Date, 'now').mockImplementation(() => now() + 600_000);
    onTestFinished(() => void vi.restoreAllMocks());
    await turn();
    clock.mockRestore();
    await redis.hset(keys.run(run), 'state', 'running');
    await redis.del(keys.open(run));
    await turn();
    expect(await tended(run)).toBe(false); // it has just looked
    vi.spyOn(performance, 'now').mockImplementation(() => passed() + 10_000);
    await turn();
    expect(await tended(run)).toBe(true);
  });

  test('need not look after a run that is resumed: its jobs are there at once', async ({ onTestFinished }) => {
    const { own, redis, make, start } = await openStage(onTestFinished);
    const run = await make('paused');
    await start();
    const resume = startCommand(['resume', run], { env: { REDIS_URL: own.url } });
    expect(await resume.ended, resume.stderr).toMatchObject({ code: 0 });
    await until('all is settled', async () => (await readRun(redis, run))!.settled === idsOfRun);
  });
});

test('a worker says with the halt of a run which rule it was, and why', async ({ onTestFinished }) => {
  const { told, make, turn, start } = await openStage(onTestFinished);
  const run = await make('running', [500]); // of ids that were never there
  await start();
  await turn();
  const line = await until('the halt is told', () => told.find(({ message }) => message === 'halting the run'));
  expect(line).toMatchObject({
    run,
    code: 'all_absent',
    reason: expect.stringMatching(/^\d+ ids in a row were not there/),
  });
});

describe('the end of a run that is hardly kept', () => {
  test('is passed on although its keys are to go at once, and then they go', async ({ onTestFinished }) => {
    const { redis, target, told, make, turn } = await openStage(onTestFinished);
    const run = await make('paused');
    await redis.hset(keys.run(run), { keepMs: 1, detached: 1 });
    const ledger = openLedger(redis);
    await ledger.steer(run, Date.now(), { action: 'cancel', by: 'operator', ...by });
    await turn();
    await turn();
    const events = Object.values(await redis.hgetall(keys.outboxEvents(target.fp)));
    expect(events.map((event) => JSON.parse(event).type)).toContain('run.cancelled');
    await until('its record is gone', async () => (await redis.exists(keys.run(run))) === 0);
    await turn();
    expect(told.filter(({ reason }) => reason?.includes('flushed'))).toEqual([]);
    expect(told).toMatchObject([{ message: 'run ended', run }]);
  });

  test('is not taken for a loss where its record goes first; a lost run is named', async ({ onTestFinished }) => {
    const { redis, target, told, make, turn } = await openStage(onTestFinished);
    const run = await make('paused');
    await redis.unlink(keys.run(run));
    await turn();
    expect(told).toEqual([]);
    await turn();
    expect(told, 'negative control').toMatchObject([{ run, reason: expect.stringContaining('flushed') }]);
    expect(await redis.sismember(keys.targetRuns(target.fp), run)).toBe(0);
  });
});
