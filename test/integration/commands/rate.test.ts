import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { keys } from '../../../src/redis/keys.ts';
import { type Harness, openHarness } from '../../support/harness.ts';
import { liveRun, recordOf } from '../../support/live-run.ts';
import { openTestRedis } from '../../support/redis.ts';

let harness: Harness;

beforeAll(async () => {
  harness = await openHarness(null, { account: '', objects: { annotations: 0, views: 9 } });
});

afterAll(() => harness.close());

describe.concurrent('expunge rate', () => {
  it('changes the rate of a live run, says what was and what is, and keeps who did it and why', async () => {
    const run = await liveRun(harness, 'changed', '--rate', '400/s');
    const ended = await harness.expunge(['rate', run, '200/s,100000/day', '--reason', 'too slow']);
    expect([ended.code, ended.stdout]).toEqual([0, '']);
    expect(ended.stderr).toMatch(
      new RegExp(
        `^Run ${run}: 200/s, at most 100,000 a day; before: 400/s. It takes effect within a second.\n` +
          `  Follow it: expunge status ${run} --watch$`,
        'm',
      ),
    );
    const { stored, audit } = await recordOf(run);
    expect(stored).toBe('200/1000,100000/86400000');
    expect(audit[0]).toMatchObject({
      action: 'rate',
      by: 'operator',
      who: expect.stringContaining(' at '),
      reason: 'too slow',
      at: expect.any(Number),
      from: '400/s',
      to: '200/s,100000/day',
    });
  });

  it('takes the rate away with "none"', async () => {
    const run = await liveRun(harness, 'taken', '--rate', '100/s');
    const { stdout, stderr } = await harness.expunge(['rate', run, 'none', '--json']);
    expect(stderr).toContain(`Run ${run}: no rate of its own; before: 100/s. It takes effect within a second.`);
    expect(JSON.parse(stdout)).toEqual({
      v: 1,
      type: 'rate',
      run,
      state: 'running',
      rate: null,
      before: { rate: '100/s' },
    });
    expect((await recordOf(run)).stored).toBe('');
    const again = await harness.expunge(['rate', run, 'none']);
    expect([again.code, again.stderr]).toEqual([
      0,
      expect.stringContaining('has that rate already: no rate of its own'),
    ]);
  });

  it('refuses a run that has ended, and leaves it as it is', async () => {
    const run = await liveRun(harness, 'ended', '--rate', '400/s');
    expect((await harness.expunge(['cancel', run, '--yes'])).code).toBe(0);
    const before = await recordOf(run);
    const { code, stderr } = await harness.expunge(['rate', run, '200/s']);
    expect(code).toBe(2);
    expect(stderr).toContain(`error: run ${run} is cancelled: there is no rate to change`);
    expect(await recordOf(run)).toEqual(before);
  });

  it.each([
    [['9x-none', '200/s'], '9x-none'],
    [['x', 'fast'], 'expected a rate like 200/s, 6000/min or 200/s,100000/day, got "fast"; "none" removes the rate'],
    [['x', '0/s'], 'at 0 nothing would ever be sent'],
    [['x'], "missing required argument 'rate"],
  ])('refuses %j with %s', async (args, words) => {
    const { code, stderr } = await harness.expunge(['rate', ...args]);
    expect([code, stderr]).toEqual([2, expect.stringContaining(words)]);
  });
});

describe('the same list again with another --rate', () => {
  it('changes the rate of its run, and without one leaves it', async () => {
    const run = await liveRun(harness, 'again', '--rate', '400/s');
    expect(await liveRun(harness, 'again', '--rate', '300/s', '--reason', 'slower')).toBe(run);
    const { stored, audit } = await recordOf(run);
    expect(stored).toBe('300/1000');
    expect(audit.filter(({ action }) => action === 'rate')).toMatchObject([
      { reason: 'slower', from: '400/s', to: '300/s' },
    ]);
    expect(await liveRun(harness, 'again')).toBe(run);
    expect((await recordOf(run)).stored).toBe('300/1000');
  });
});

describe('a rate that another version wrote', () => {
  it('is told, keeps no list from being shown, and can be replaced', async () => {
    const run = await liveRun(harness, 'old');
    const redis = await openTestRedis();
    await redis.hset(keys.run(run), 'rate', '200').finally(() => redis.disconnect());
    expect((await harness.expunge(['runs', '--list', 'old.csv'])).stdout).toContain(run);
    const told = `its rate "200" is in a form that this version of expunge can't read. Give it another: expunge rate ${run} 200/s`;
    expect((await harness.expunge(['status', run])).stdout).toContain(told);
    expect((await harness.expunge(['rate', run, '200/s'])).code).toBe(0);
    expect((await recordOf(run)).stored).toBe('200/1000');
  });
});
