import { describe, test } from 'vitest';
import { keys } from '../../src/redis/keys.ts';
import { readHistory, readSchedule } from '../../src/schedule/schedule-store.ts';
import { type Harness, openHarness } from '../support/harness.ts';
import { annotations, makeIds } from '../support/ids.ts';
import { openOwnRedis } from '../support/own-redis.ts';
import { until } from '../support/processes.ts';
import { addSchedule, storeSchedule } from '../support/schedules.ts';

const withSources = (harness: Harness, sources: object): NodeJS.ProcessEnv => ({
  EXPUNGE_CONFIG: harness.file('config.json', JSON.stringify({ sources })),
});

describe.concurrent('schedules of real workers', () => {
  /** @invariant sent-once-when-carried */
  test('delete a list in parts by --at-most, one run after the other and each id in one, although a worker is killed while it makes one', async ({
    expect,
    onTestFinished,
  }) => {
    const ids = makeIds('part', 75);
    const harness = await openHarness(onTestFinished, { objects: annotations(ids) });
    const config = withSources(harness, { fixed: { command: ['cat', harness.list(ids)] } });
    const every = ['--cron', '* * * * * *', '--from', 'fixed', '--missed', 'latest'];
    await addSchedule(harness, 'parts', ...every, '--at-most', '25');
    const first = await harness.spawnWorker([], config);
    await until('a run is being made', async () => (await harness.runs()).length > 0);
    first.signal('SIGKILL');
    for (let n = 0; n < 2; n++) await harness.worker([], config);
    const read = async () => (await readSchedule(harness.redis, harness.target.fp, 'parts'))!;
    const isPaused = async () => (await read()).state === 'paused';
    await until('all parts are deleted, and the list is the same again', isPaused);
    const runs = (await harness.runs()).toSorted((a, b) => a.startedAt - b.startedAt);
    expect(runs.map(({ state, ids: sent }) => [state, sent])).toEqual(Array(3).fill(['completed', 25]));
    expect(runs.slice(1).filter(({ startedAt }, n) => startedAt < runs[n]!.endedAt)).toEqual([]);
    expect(harness.sandbox.executed.size).toBe(ids.length);
    expect(new Set(harness.sandbox.seen).size).toBe(ids.length);
    expect(await read()).toMatchObject({ pausedBy: 'same', carriedOver: null });
  });

  test('start nothing when their command fails, and end with the worker', async ({ expect, onTestFinished }) => {
    const harness = await openHarness(onTestFinished);
    const often = { cron: '* * * * * *', maxDelayMs: 60_000 };
    await storeSchedule(harness, 'failing', { ...often, from: 'failing' }, Date.now());
    await storeSchedule(harness, 'hanging', { ...often, from: 'hanging' }, Date.now());
    const sources = { failing: { command: ['sh', '-c', 'seq 1 50; exit 3'] }, hanging: { command: ['sleep', '600'] } };
    const worker = await harness.worker([], withSources(harness, sources));
    const fates = async (name: string) =>
      (await readHistory(harness.redis, harness.target.fp, name)).map(({ outcome }) => outcome);
    await until('it failed', async () => (await fates('failing')).includes('failed'));
    worker.signal('SIGTERM');
    expect(await worker.ended).toMatchObject({ code: 0 });
    expect([await harness.runs(), harness.sandbox.seen]).toEqual([[], []]);
    expect(await fates('hanging')).not.toContain('failed');
  });

  test('end with the worker also where Redis hangs while a list is read', async ({ expect, onTestFinished }) => {
    const { url, pid, connect } = await openOwnRedis(onTestFinished);
    const harness = await openHarness(onTestFinished);
    const redis = connect();
    await storeSchedule({ ...harness, redis }, 'hanging', { cron: '* * * * * *', from: 'hanging' }, Date.now());
    const config = withSources(harness, { hanging: { command: ['sleep', '600'] } });
    const worker = await harness.spawnWorker([], { ...config, REDIS_URL: url });
    const { schedule, scheduleLease } = keys;
    await until('a list is read', async () => redis.exists(scheduleLease(harness.target.fp, 'hanging')));
    expect(await redis.hget(schedule(harness.target.fp, 'hanging'), 'waiting')).not.toBe('');
    process.kill(pid, 'SIGSTOP');
    worker.signal('SIGTERM');
    expect(await worker.ended).toMatchObject({ code: 0 });
  });
});
