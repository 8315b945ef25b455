import { describe, test } from 'vitest';
import { findBroken } from '../support/checker.ts';
import { canFill, openFullRedis } from '../support/full-redis.ts';
import { openHarness } from '../support/harness.ts';
import { annotations, makeIds } from '../support/ids.ts';
import { until } from '../support/processes.ts';
import { measureRejectedWrites } from '../support/redis-refuses.ts';
import { isFull, promised, sized } from '../support/size.ts';

const [disk, memory] = ['its disk is full (MISCONF)', 'its memory is full, maxmemory is reached (OOM)'];
const cases = sized(
  [
    { store: 'disk', workers: 2, why: disk },
    { store: 'memory', workers: 0, why: memory },
  ] as const,
  [
    { store: 'disk', workers: 2, why: disk },
    { store: 'memory', workers: 2, why: memory },
    { store: 'disk', workers: 0, why: disk },
    { store: 'replicas', workers: 2, why: 'too few of its replicas are connected (NOREPLICAS)' },
    { store: 'role', workers: 2, why: 'it is a read-only replica (READONLY)' },
  ] as const,
);

// In full longer than BullMQ's locks live, and than the lines of progress are apart.
const refusal = sized({ ids: 800, ms: 1_200 }, { ids: 50_000, ms: 25_000 });

const ids = makeIds('f', 600);
const settings = { EXPUNGE_MAX_CONCURRENCY: '16' };

describe.concurrent('a run in the middle whose Redis takes no writes', () => {
  test.for(cases.filter(({ store }) => canFill(store)))(
    'stands still, says why, and goes on by itself ($store, $workers workers)',
    async ({ store, workers, why }, { expect, onTestFinished }) => {
      const { said, status, resumedAfterMs, ...seen } = await measureRejectedWrites({
        store,
        workers,
        ...refusal,
        ...(isFull ? {} : { settings }),
        atEnd: onTestFinished,
      });
      expect(seen).toEqual({ sentWithout: 0, broken: null, hasRestarted: false, lost: 0 });
      if (isFull) expect(resumedAfterMs).toBeLessThan(5_000);
      const waiting = `Waiting: Redis rejects writes: ${why}; nothing is sent until it accepts them again.`;
      if (store !== 'role') expect(status).toContain(waiting); // commands refuse a replica before they look at a run
      if (isFull && workers === 0) for (const text of said) expect(text).toContain(waiting);
      for (const log of workers > 0 ? said : []) {
        expect(log.match(/sending stopped/g)).toHaveLength(1);
        expect(log).toContain(`"reason":"Redis rejects writes: ${why}"`);
        expect(log.match(/Redis accepts writes again/g)).toHaveLength(1);
      }
    },
  );

  // The limiter goes on granting permits here, and the run is seen to be running: nothing but the mark keeps a request from leaving.
  /** @invariant mark-before-request */
  test('sends nothing whose mark was refused, whatever else is taken', async ({ expect, onTestFinished }) => {
    const {
      said,
      status: _,
      resumedAfterMs,
      ...seen
    } = await measureRejectedWrites({
      store: 'rights',
      workers: 1,
      ids: 800,
      ms: 1_200,
      settings,
      atEnd: onTestFinished,
    });
    expect(seen).toEqual({ sentWithout: 0, broken: null, hasRestarted: false, lost: 0 });
    expect(said[0]!.match(/sending stopped/g)).toHaveLength(1);
    expect(resumedAfterMs).toBeLessThan(promised(5_000));
    expect(said[0]).toContain('Redis rejects writes: the login lacks the permission for');
  });

  test('can be interrupted, is not begun, and goes on later: each says why', async ({ expect, onTestFinished }) => {
    const redis = await openFullRedis('memory', onTestFinished);
    const harness = await openHarness(onTestFinished, { objects: annotations(ids), latencyMs: 20 }, redis);
    const args = ['run', harness.list(ids), '--resource', 'annotations', '--yes'];
    const env = { ...settings, EXPUNGE_REQUEST_TIMEOUT_MS: '1000' };
    const interrupted = harness.start(args, env);
    await until('the run is in the middle', () => {
      if (interrupted.isOver) throw new Error(`it ended: ${interrupted.stderr}`);
      return harness.arrivals.length > 200;
    });
    await redis.fill(await harness.onlyRun());
    interrupted.signal('SIGINT');
    expect((await interrupted.ended).code).toBe(130);
    expect(interrupted.stderr).toContain('Redis rejects writes: its memory is full, maxmemory is reached (OOM).');
    const [sent, refused] = [harness.arrivals.length, await harness.expunge(args, { env })];
    expect(refused.code).toBe(6);
    expect(refused.stderr).toMatch(/^error: Redis at unix:\S+: its memory is full, maxmemory is reached \(OOM\)$/m);
    expect(harness.arrivals).toHaveLength(sent);
    await redis.free();
    expect((await harness.expunge(args, { env })).code).toBe(0);
    const run = await harness.onlyRun();
    expect(await findBroken({ ...harness, run, resource: 'annotations', ids, bystanders: [] })).toBeNull();
  });
});

test.concurrent('ended runs can be removed from a Redis whose memory is full, and `check` says that it is', async ({
  expect,
  onTestFinished,
}) => {
  const redis = await openFullRedis('memory', onTestFinished);
  const harness = await openHarness(onTestFinished, { objects: annotations(ids.slice(0, 10)) }, redis);
  const run = await harness.run([harness.list(ids.slice(0, 10)), '--resource', 'annotations', '--yes']);
  expect(run.code).toBe(0);
  const { id, fp } = await harness.onlyRun();
  await redis.fill({ id, fp });
  const removing = await harness.expunge(['runs', 'remove', id, '--yes']);
  expect(removing.code).toBe(0);
  expect(removing.stderr).toContain('maxmemory is reached (OOM)');
  expect(await harness.runs()).toEqual([]);
  const check = await harness.expunge(['check']);
  expect(check.code).toBe(6);
  expect(check.stdout).toContain('writes: its memory is full, maxmemory is reached (OOM)');
  expect(check.stdout).toContain('raise its maxmemory, or remove what fills it');
});
