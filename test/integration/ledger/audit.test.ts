import { randomUUID } from 'node:crypto';
import { describe, test } from 'vitest';
import {
  auditFacts,
  auditLength,
  noteRunAction,
  noteTargetAction,
  readAudit,
  readTargetAudit,
} from '../../../src/ledger/audit.ts';
import { settle } from '../../../src/ledger/cell.ts';
import { changeRules } from '../../../src/ledger/change-rules.ts';
import { openLedger, type Steering } from '../../../src/ledger/ledger.ts';
import { readRun } from '../../../src/ledger/run.ts';
import { startTarget, stopTarget } from '../../../src/ledger/steer-target.ts';
import { readStops } from '../../../src/limiter/stop.ts';
import { codeOfStatus } from '../../../src/model/outcome.ts';
import { parseRate } from '../../../src/model/rate.ts';
import { keys } from '../../../src/redis/keys.ts';
import { redisDuringTests } from '../../support/redis.ts';
import { forgetRun, writeTestRun } from './lone-run.ts';

const redis = await redisDuringTests();

type AtEnd = (task: () => Promise<void>) => void;

async function openRun(atEnd: AtEnd) {
  const id = await writeTestRun(redis, [100]);
  const { fp, createdAt } = (await readRun(redis, id))!;
  const ledger = openLedger(redis);
  atEnd(async () => {
    await forgetRun(redis, id);
    await redis.unlink(keys.stop(fp), keys.targetAudit(fp));
  });
  const steer = (action: Steering['action'], at: number, reason = '') =>
    ledger.steer(id, createdAt + at, { action, reason, by: 'operator', who: 'ana' });
  const trail = async () => readAudit(redis, (await readRun(redis, id))!);
  return { id, fp, createdAt, ledger, steer, trail };
}

describe.concurrent('the audit trail of a run', () => {
  test('tells who did what to it and why, and what was done to its target meanwhile', async ({
    expect,
    onTestFinished,
  }) => {
    const { id, fp, createdAt, steer, trail } = await openRun(onTestFinished);
    await stopTarget(redis, fp, { who: 'eve', reason: 'before its time', at: createdAt - 1 });
    await startTarget(redis, fp, { who: 'bob', reason: '', at: createdAt + 1 });
    await steer('start', 2);
    const faster = async (who: string) => {
      const action = { at: createdAt + 3, by: 'operator', who, reason: 'faster' } as const;
      await changeRules(redis, (await readRun(redis, id))!, { rate: parseRate('9/s') }, action);
    };
    await faster('ana');
    await faster('bob'); // changes nothing
    await stopTarget(redis, fp, { who: 'bob', reason: 'they call us', at: createdAt + 4 });
    const removal = { at: createdAt + 5, action: 'remove', by: 'operator', who: 'bob', reason: '' } as const;
    await noteTargetAction(redis, fp, { ...removal, run: 'another' });
    await steer('pause', 5, 'release window');
    await steer('pause', 6, 'release window'); // again: changes nothing
    expect((await trail()).map(({ at, action, who, reason }) => [at - createdAt, action, who, reason])).toEqual([
      [0, 'submit', 'test', ''],
      [1, 'start-all', 'bob', ''],
      [2, 'start', 'ana', ''],
      [3, 'rate', 'ana', 'faster'],
      [4, 'stop-all', 'bob', 'they call us'],
      [5, 'pause', 'ana', 'release window'],
    ]);
    const ofTarget = await readTargetAudit(redis, fp);
    expect(ofTarget.map(({ action }) => action)).toEqual(['stop-all', 'start-all', 'stop-all', 'remove']);
    expect(ofTarget.at(-1)).toEqual({ ...removal, run: 'another' });
  });

  test('tells what else was done with it, and nothing that was done to its target after its end', async ({
    expect,
    onTestFinished,
  }) => {
    const { id, fp, createdAt, steer, trail } = await openRun(onTestFinished);
    await stopTarget(redis, fp, { who: 'eve', reason: 'at once', at: createdAt });
    await noteRunAction(redis, id, { at: createdAt + 1, action: 'export', by: 'operator', who: 'bob', reason: '' });
    await steer('cancel', 2);
    const { endedAt } = (await readRun(redis, id))!;
    await startTarget(redis, fp, { who: 'eve', reason: '', at: endedAt });
    await stopTarget(redis, fp, { who: 'eve', reason: 'after its end', at: endedAt + 1 });
    const all = await trail();
    expect(all.map(({ action }) => action)).toEqual(['submit', 'stop-all', 'export', 'cancel', 'start-all']);
    expect(all[0]).toEqual({ at: createdAt, action: 'submit', by: 'operator', who: 'test', reason: '' });
    expect(auditFacts(all[2]!)).toEqual({ ...all[2], at: new Date(createdAt + 1).toISOString() });
  });

  test('tells of a guard that halted it', async ({ expect, onTestFinished }) => {
    const { id, ledger, steer, trail } = await openRun(onTestFinished);
    await steer('start', 0);
    await ledger.enqueue(id);
    const claim = await ledger.claim(id, 0);
    const epoch = typeof claim === 'string' ? 0 : claim.epoch;
    const cell = settle('unknown', 1, codeOfStatus(200));
    const results = [0, 1, 2].map((index) => ({ index, cell }));
    const before = Date.now();
    expect(await ledger.update({ run: id, chunk: 0, epoch, results })).toMatchObject({ state: 'halted' });
    const last = (await trail()).at(-1)!;
    const run = (await readRun(redis, id))!;
    expect(last).toMatchObject({
      action: 'halt',
      by: 'guard',
      who: '',
      halt: 'unexpected_answers',
      reason: run.reason,
    });
    expect(last.at).toBeGreaterThanOrEqual(before);
    expect(last.at).toBeLessThanOrEqual(Date.now());
  });

  test('keeps its last entries, and always the submission', async ({ expect, onTestFinished }) => {
    const { steer, trail } = await openRun(onTestFinished);
    for (let n = 0; n < auditLength; n++) {
      await steer('start', 2 * n);
      await steer('pause', 2 * n + 1, `pause ${n}`);
    }
    const all = await trail();
    expect(all).toHaveLength(auditLength + 1);
    expect([all[0]!.action, all.at(-1)!.reason]).toEqual(['submit', `pause ${auditLength - 1}`]);
  });
});

describe.concurrent('the pause of a run', () => {
  test('that its author has replaced is not written again by a process that knows the one before', async ({
    expect,
    onTestFinished,
  }) => {
    const { id, ledger, steer, trail } = await openRun(onTestFinished);
    await steer('start', 0);
    const pause = (name: string, reason: string) =>
      ledger.steer(id, Date.now(), { action: 'pause', by: 'operator', who: 'ana', reason, id: name });
    expect(await pause('first', 'too slow')).toMatchObject({ isChanged: true });
    expect(await pause('second', 'legal hold')).toMatchObject({ isChanged: true });
    expect(await pause('first', 'too slow')).toMatchObject({ isChanged: false });
    expect((await readRun(redis, id))!.pauses).toMatchObject([{ id: 'second', who: 'ana', reason: 'legal hold' }]);
    expect((await trail()).map(({ reason }) => reason)).toEqual(['', '', 'too slow', 'legal hold']);
    await redis.hdel(keys.run(id), 'pauses', 'who', 'reason');
    expect(await pause('second', 'legal hold'), 'one that was lost').toMatchObject({ isChanged: true });
  });
});

describe.concurrent('the stop of a target', () => {
  test('is kept for each operator, and lifted by its own author first', async ({ expect, onTestFinished }) => {
    const { fp } = await openRun(onTestFinished);
    const ana = { who: 'ana', reason: 'they call us', at: 1 };
    const bob = { who: 'bob', reason: 'me too', at: 2 };
    const by = 'operator';
    expect(await stopTarget(redis, fp, ana)).toMatchObject({ before: null, isChanged: true });
    expect(await stopTarget(redis, fp, bob)).toMatchObject({ before: ana, isChanged: true });
    expect(await stopTarget(redis, fp, bob), 'again').toMatchObject({ isChanged: false });
    const both = { by, ...ana, others: [{ by, ...bob }] };
    expect(await readStops(redis, fp)).toEqual({ target: both, processes: [], tokenless: [], alive: 0, said: [] });
    expect(await startTarget(redis, fp, { who: 'bob', reason: '', at: 3 })).toMatchObject({ after: ana });
    expect(await startTarget(redis, fp, { who: 'bob', reason: '', at: 4 })).toMatchObject({ after: null });
    expect(await startTarget(redis, fp, { who: 'bob', reason: '', at: 5 })).toMatchObject({ isChanged: false });
    expect(await redis.llen(keys.targetAudit(fp))).toBe(4);
    expect((await readStops(redis, randomUUID())).target).toBeNull();
  });

  test('also holds where nobody can read what it says', async ({ expect, onTestFinished }) => {
    const { fp } = await openRun(onTestFinished);
    await redis.set(keys.stop(fp), '1');
    expect((await readStops(redis, fp)).target).toMatchObject({ by: 'operator', who: '?' });
  });
});
