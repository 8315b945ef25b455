import { describe, test } from 'vitest';
import { type AtEnd, openHarness } from '../../support/harness.ts';
import { annotations, makeIds } from '../../support/ids.ts';
import { until, without } from '../../support/processes.ts';
import { openRedisProxy } from '../../support/redis-proxy.ts';

const ids = makeIds('far', 300);
const roundTripMs = 200;

/** A sandbox with all ids, and a long way to Redis. */
async function openFar(atEnd: AtEnd) {
  const way = await openRedisProxy();
  way.roundTripMs = roundTripMs;
  atEnd(way.close);
  const harness = await openHarness(atEnd, { objects: annotations(ids) });
  const run = ['run', harness.list(ids), '--resource', 'annotations', '--yes'];
  return { way, harness, run, env: { REDIS_URL: way.url } };
}

describe.concurrent('a Redis far away', () => {
  test.for([
    [[], false],
    [['--rate', '100/s'], false],
    [[], true],
  ] as const)(
    'delays a run and nothing else: with %j, and a worker nearby: %s',
    async ([args, isShared], { expect, onTestFinished }) => {
      const { harness, run, env } = await openFar(onTestFinished);
      if (isShared) {
        await harness.spawnWorker([], env);
        await harness.spawnWorker();
      }
      const { ended } = harness.spawn([...run, ...args, ...(isShared ? ['--detach'] : [])], isShared ? {} : env);
      expect(await ended).toMatchObject({ code: 0 });
      const { counts } = await harness.runIs('completed', ({ state }) => state === 'completed', 120_000);
      expect(counts.deleted).toBe(ids.length);
      expect(harness.arrivals).toHaveLength(ids.length);
    },
  );

  test('that comes nearer and goes away again loses no id', async ({ expect, onTestFinished }) => {
    const { way, harness, run, env } = await openFar(onTestFinished);
    const running = harness.spawn([...run, '--rate', '40/s'], env);
    for (const [share, ms] of [
      [0.1, 5],
      [0.4, 2 * roundTripMs],
      [0.7, 5],
    ] as const) {
      await until('a part is deleted', () => harness.arrivals.length > share * ids.length, 60_000);
      way.roundTripMs = ms;
    }
    expect(await running.ended).toMatchObject({ code: 0 });
    expect((await harness.onlyRun()).counts.deleted).toBe(ids.length);
  });

  test('negative control: with the times of a near Redis nothing is sent', async ({ expect, onTestFinished }) => {
    const { way, harness, run, env } = await openFar(onTestFinished);
    harness.spawn(run, { ...env, ...without('distance') });
    await harness.runIs('running', ({ state }) => state === 'running', 60_000);
    const before = way.commands;
    await until('Redis is asked for permits again and again', () => way.commands > before + 300, 120_000);
    expect(harness.arrivals).toEqual([]);
  });
});
