import { describe, test } from 'vitest';
import { keys } from '../../src/redis/keys.ts';
import { readHistory } from '../../src/schedule/schedule-store.ts';
import { openOwnRedis } from '../support/own-redis.ts';
import { until } from '../support/processes.ts';
import { openScene, type Scene } from '../support/scene.ts';
import { findOverlap, freshIds, openCrowd, runsEnd, storeSchedule, workerWith } from '../support/schedules.ts';

const hour = 3_600_000;

/** What became of its slots, one by one; newest first. */
async function fates({ redis, target }: Scene, name: string): Promise<string[]> {
  const history = await readHistory(redis, target.fp, name);
  return history.flatMap(({ outcome, slots }) => Array.from({ length: slots }, () => outcome));
}

describe.concurrent('schedules of real workers', () => {
  test('never have two runs at once: every second, runs of 2.5 s, four workers, two definitions of the source', async ({
    expect,
    onTestFinished,
  }) => {
    const crowd = await openCrowd(onTestFinished, 4);
    await runsEnd(crowd, 2, 60_000);
    expect(await findOverlap(crowd)).toBeNull();
    expect(await fates(crowd.scene, 'often')).toContain('skipped');
  });

  test.for([
    ['none', 0, ['missed', 'missed', 'missed']],
    ['latest', 1, ['started', 'missed', 'missed']],
  ] as const)(
    'by "%s" have %d runs after three periods without a worker',
    async ([missed, runs, slots], { expect, onTestFinished }) => {
      const scene = await openScene(onTestFinished);
      const settings = { resource: 'annotations', maxDeletes: '100', expectAbsent: 'true' };
      const threeAgo = Math.floor(Date.now() / hour) * hour - 2.5 * hour;
      await storeSchedule(
        scene,
        'hourly',
        { cron: '0 * * * *', from: 'fresh', missed, graceMs: 1, settings },
        threeAgo,
      );
      await workerWith(scene, 'config.json', { fresh: freshIds('v', 3) });
      await until('the slots are seen to', async () => (await fates(scene, 'hourly')).length === 3);
      if (runs > 0) await scene.runIs('completed', ({ state }) => state === 'completed');
      expect(await fates(scene, 'hourly')).toEqual(slots);
      expect([await scene.runs(), scene.sandbox.seen].map(({ length }) => length)).toEqual([runs, 3 * runs]);
    },
  );

  test('start nothing when their command fails, and end with the worker in time', async ({
    expect,
    onTestFinished,
  }) => {
    const scene = await openScene(onTestFinished);
    const often = { cron: '* * * * * *', graceMs: 60_000 };
    await storeSchedule(scene, 'failing', { ...often, from: 'failing' }, Date.now());
    await storeSchedule(scene, 'hanging', { ...often, from: 'hanging' }, Date.now());
    const sources = { failing: { command: ['sh', '-c', 'seq 1 50; exit 3'] }, hanging: { command: ['sleep', '600'] } };
    const worker = await workerWith(scene, 'config.json', sources);
    const failures = async () => (await fates(scene, 'failing')).filter((fate) => fate === 'failed').length;
    await until('it failed twice', async () => (await failures()) >= 2);
    const since = performance.now();
    worker.signal('SIGTERM');
    expect(await worker.ended).toMatchObject({ code: 0 });
    expect(performance.now() - since).toBeLessThan(12_000);
    expect([await scene.runs(), scene.sandbox.seen]).toEqual([[], []]);
    expect(await fates(scene, 'hanging')).not.toContain('failed');
  });

  test('end with the worker in time also where Redis hangs while a list is read', async ({
    expect,
    onTestFinished,
  }) => {
    const { url, pid, connect } = await openOwnRedis(onTestFinished);
    const scene = await openScene(onTestFinished);
    const redis = connect();
    await storeSchedule({ ...scene, redis }, 'hanging', { cron: '* * * * * *', from: 'hanging' }, Date.now());
    const worker = await workerWith(
      scene,
      'config.json',
      { hanging: { command: ['sleep', '600'] } },
      { REDIS_URL: url },
    );
    const { schedule, scheduleHand } = keys;
    await until('a list is read', async () => redis.exists(scheduleHand(scene.target.fp, 'hanging')));
    expect(await redis.hget(schedule(scene.target.fp, 'hanging'), 'waiting')).not.toBe('');
    process.kill(pid, 'SIGSTOP');
    const since = performance.now();
    worker.signal('SIGTERM');
    expect(await worker.ended).toMatchObject({ code: 0 });
    expect(performance.now() - since).toBeLessThan(12_000);
  });
});
