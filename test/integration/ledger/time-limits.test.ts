import { describe, test } from 'vitest';
import { openLedger } from '../../../src/ledger/ledger.ts';
import { readRun } from '../../../src/ledger/run.ts';
import { toExitCode } from '../../../src/ledger/summary.ts';
import { keys } from '../../../src/redis/keys.ts';
import type { AtEnd } from '../../support/harness.ts';
import { redisDuringTests } from '../../support/redis.ts';
import { forgetRun, writeTestRun } from './lone-run.ts';

const redis = await redisDuringTests();
const ledger = openLedger(redis);

const hourMs = 3_600_000;

/** A started run with these fields. */
async function openRun(atEnd: AtEnd, fields: Record<string, number>) {
  const id = await writeTestRun(redis, [500, 500]);
  atEnd(() => forgetRun(redis, id));
  const set = (more: Record<string, number>) => redis.hset(keys.run(id), more);
  const start = () => ledger.steer(id, Date.now(), { action: 'start', reason: '', by: 'operator', who: 'test' });
  await start();
  await set(fields);
  return { id, set, start, enqueue: () => ledger.enqueue(id), record: async () => (await readRun(redis, id))! };
}

describe.concurrent('a run is paused by a guard', () => {
  test('at the moment of --stop-at, also while its window is closed; resumed, it goes on without it', async ({
    expect,
    onTestFinished,
  }) => {
    const run = await openRun(onTestFinished, { stopAt: Date.now() + hourMs });
    expect(await run.enqueue()).toEqual([0, 1]);
    await run.set({ stopAt: Date.now() - 1, closedUntil: Date.now() + hourMs });
    expect(await run.enqueue()).toEqual([]);
    const paused = await run.record();
    expect(paused).toMatchObject({ state: 'paused', by: 'guard', who: '', reason: 'the moment of --stop-at has come' });
    expect([paused.activeUntil, toExitCode(paused)]).toEqual([0, 4]);
    expect(JSON.parse((await redis.lindex(keys.audit(run.id), 0))!)).toMatchObject({ action: 'pause', by: 'guard' });
    await run.start();
    await run.enqueue();
    expect(await run.record()).toMatchObject({ state: 'running', stopAt: 0, halt: '' });
  });

  test('after the deleting time of --max-duration, counted from its last start', async ({ expect, onTestFinished }) => {
    const run = await openRun(onTestFinished, { maxActiveMs: hourMs, activeMs: hourMs - 60_000 });
    expect(await run.enqueue()).toEqual([0, 1]);
    await run.set({ activeMs: hourMs });
    await run.enqueue();
    const reason = 'it has deleted for as long as --max-duration allows';
    expect(await run.record()).toMatchObject({ state: 'paused', by: 'guard', reason });
    await run.start();
    await run.set({ activeMs: 2 * hourMs - 60_000 });
    await run.enqueue();
    expect((await run.record()).state).toBe('running');
    await run.set({ activeMs: 2 * hourMs + 60_000 });
    await run.enqueue();
    expect((await run.record()).state).toBe('paused');
  });

  test('before it sends anything, where its --stop-at came before its start', async ({ expect, onTestFinished }) => {
    const id = await writeTestRun(redis, [500]);
    onTestFinished(() => forgetRun(redis, id));
    await redis.hset(keys.run(id), 'stopAt', Date.now() - 1);
    await ledger.steer(id, Date.now(), { action: 'start', reason: '', by: 'operator', who: 'test' });
    expect(await ledger.enqueue(id)).toEqual([]);
    expect((await readRun(redis, id))!).toMatchObject({ state: 'paused', next: 0 });
  });

  test.for(['pause', 'halt'] as const)(
    'and no second time where its --stop-at came after a %s: resumed, it goes on without it',
    async (action, { expect, onTestFinished }) => {
      const run = await openRun(onTestFinished, { stopAt: Date.now() + hourMs });
      await ledger.steer(run.id, Date.now(), { action, reason: '', by: 'operator', who: 'test' });
      await run.set({ stopAt: Date.now() - 1 });
      await run.start();
      expect(await run.enqueue()).toEqual([0, 1]);
      expect(await run.record()).toMatchObject({ state: 'running', stopAt: 0 });
    },
  );

  test('and keeps a --stop-at that is still to come when it is resumed', async ({ expect, onTestFinished }) => {
    const stopAt = Date.now() + hourMs;
    const run = await openRun(onTestFinished, { stopAt });
    await ledger.steer(run.id, Date.now(), { action: 'pause', reason: '', by: 'operator', who: 'test' });
    await run.start();
    expect((await run.record()).stopAt).toBe(stopAt);
  });
});
