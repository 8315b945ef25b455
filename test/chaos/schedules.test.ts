import { describe, test } from 'vitest';
import { keys } from '../../src/redis/keys.ts';
import { readHistory, readSchedule } from '../../src/schedule/schedule-store.ts';
import { type Harness, openHarness } from '../support/harness.ts';
import { annotations, makeIds } from '../support/ids.ts';
import { openOwnRedis } from '../support/own-redis.ts';
import { until } from '../support/processes.ts';
import {
  addSchedule,
  findOverlap,
  freshIds,
  openScheduleWorkers,
  runsEnd,
  storeSchedule,
  workerWith,
} from '../support/schedules.ts';
import { isFull, promised } from '../support/size.ts';

const hour = 3_600_000;

/** What became of its occurrences, one by one; newest first. */
async function fates({ redis, target }: Harness, name: string): Promise<string[]> {
  const history = await readHistory(redis, target.fp, name);
  return history.flatMap(({ outcome, occurrences }) => Array.from({ length: occurrences }, () => outcome));
}

describe.concurrent('schedules of real workers', () => {
  test('never have two runs at once: every second, runs of 2.5 s, four workers, two definitions of the source', async ({
    expect,
    onTestFinished,
  }) => {
    const crowd = await openScheduleWorkers(onTestFinished, 4);
    await runsEnd(crowd, 2);
    expect(await findOverlap(crowd)).toBeNull();
    expect(await fates(crowd.harness, 'often')).toContain('skipped');
  });

  test.for([
    ['none', 0, ['missed', 'missed', 'missed']],
    ['latest', 1, ['started', 'missed', 'missed']],
  ] as const)(
    'by "%s" have %d runs after three periods without a worker',
    async ([missed, runs, occurrences], { expect, onTestFinished }) => {
      const harness = await openHarness(onTestFinished);
      const settings = { resource: 'annotations', maxDeletes: '100', expectAbsent: 'true' };
      const threeAgo = Math.floor(Date.now() / hour) * hour - 2.5 * hour;
      await storeSchedule(
        harness,
        'hourly',
        { cron: '0 * * * *', from: 'fresh', missed, maxDelayMs: 1, settings },
        threeAgo,
      );
      await workerWith(harness, 'config.json', { fresh: freshIds('v', 3) });
      await until('the occurrences are seen to', async () => (await fates(harness, 'hourly')).length === 3);
      if (runs > 0) await harness.runIs('completed', ({ state }) => state === 'completed');
      expect(await fates(harness, 'hourly')).toEqual(occurrences);
      expect([await harness.runs(), harness.sandbox.seen].map(({ length }) => length)).toEqual([runs, 3 * runs]);
    },
  );

  /** @invariant sent-once-when-carried */
  test('delete a list in parts by --at-most, each id in one run, although two workers are killed while they make one', async ({
    expect,
    onTestFinished,
  }) => {
    const ids = makeIds('part', 100);
    const harness = await openHarness(onTestFinished, { objects: annotations(ids) });
    const sources = { fixed: { command: ['cat', harness.list(ids)] } };
    const every = ['--cron', '* * * * * *', '--from', 'fixed', '--missed', 'latest'];
    await addSchedule(harness, 'parts', ...every, '--at-most', '25');
    for (const kill of [1, 2]) {
      const worker = await workerWith(harness, `${kill}.json`, sources);
      await until(`run ${kill} is being made`, async () => (await harness.runs()).length >= kill, 240_000);
      worker.signal('SIGKILL');
      await worker.ended.catch(() => {});
    }
    await workerWith(harness, 'last.json', sources);
    const read = async () => (await readSchedule(harness.redis, harness.target.fp, 'parts'))!;
    const isPaused = async () => (await read()).state === 'paused';
    await until('all parts are deleted, and the list is the same again', isPaused, 240_000);
    const runs = await harness.runs();
    expect(runs.map(({ state, ids: sent }) => [state, sent])).toEqual(
      Array.from({ length: 4 }, () => ['completed', 25]),
    );
    expect(new Set(harness.sandbox.seen).size).toBe(ids.length);
    expect(await read()).toMatchObject({ pausedBy: 'same', carriedOver: null });
  });

  test('start nothing when their command fails, and end with the worker in time', async ({
    expect,
    onTestFinished,
  }) => {
    const harness = await openHarness(onTestFinished);
    const often = { cron: '* * * * * *', maxDelayMs: 60_000 };
    await storeSchedule(harness, 'failing', { ...often, from: 'failing' }, Date.now());
    await storeSchedule(harness, 'hanging', { ...often, from: 'hanging' }, Date.now());
    const sources = { failing: { command: ['sh', '-c', 'seq 1 50; exit 3'] }, hanging: { command: ['sleep', '600'] } };
    const worker = await workerWith(harness, 'config.json', sources);
    const failures = async () => (await fates(harness, 'failing')).filter((fate) => fate === 'failed').length;
    await until('it failed twice', async () => (await failures()) >= 2);
    const since = performance.now();
    worker.signal('SIGTERM');
    expect(await worker.ended).toMatchObject({ code: 0 });
    expect(performance.now() - since).toBeLessThan(promised(12_000));
    expect([await harness.runs(), harness.sandbox.seen]).toEqual([[], []]);
    expect(await fates(harness, 'hanging')).not.toContain('failed');
  });

  test('end with the worker in time also where Redis hangs while a list is read', async ({
    expect,
    onTestFinished,
  }) => {
    const { url, pid, connect } = await openOwnRedis(onTestFinished);
    const harness = await openHarness(onTestFinished);
    const redis = connect();
    await storeSchedule({ ...harness, redis }, 'hanging', { cron: '* * * * * *', from: 'hanging' }, Date.now());
    const worker = await workerWith(
      harness,
      'config.json',
      { hanging: { command: ['sleep', '600'] } },
      { REDIS_URL: url },
    );
    const { schedule, scheduleLease } = keys;
    await until('a list is read', async () => redis.exists(scheduleLease(harness.target.fp, 'hanging')));
    expect(await redis.hget(schedule(harness.target.fp, 'hanging'), 'waiting')).not.toBe('');
    process.kill(pid, 'SIGSTOP');
    const since = performance.now();
    worker.signal('SIGTERM');
    expect(await worker.ended).toMatchObject({ code: 0 });
    expect(performance.now() - since).toBeLessThan(promised(12_000));
  });
});

if (isFull) {
  const killEveryMs = 7_000;

  test('never two runs at once: every second, runs of 2.5 s, four workers, one of them killed every 7 s, for 30 runs', async ({
    expect,
    onTestFinished,
  }) => {
    const crowd = await openScheduleWorkers(onTestFinished, 4);
    const { harness, workers } = crowd;
    let kills = 0;
    const starts: Promise<void>[] = [];
    const killer = setInterval(() => {
      workers[kills % workers.length]!.signal('SIGKILL');
      const n = kills++ % workers.length;
      const start = async () => {
        workers[n] = await workerWith(harness, `again-${kills}.json`, { fresh: freshIds('odd', 25) });
      };
      starts.push(start());
    }, killEveryMs);
    onTestFinished(() => clearInterval(killer));
    await runsEnd(crowd, 30, 1_800_000);
    clearInterval(killer);
    await Promise.all(starts);
    await until(
      'nothing is left half made',
      async () => (await harness.runs()).every(({ state }) => state === 'completed'),
      60_000,
    );
    expect(await findOverlap(crowd)).toBeNull();
    expect(kills).toBeGreaterThan(5);
    console.log(`${(await harness.runs()).length} runs, ${kills} kills, never two at once`);
  });
}
