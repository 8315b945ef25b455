import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Harness, openHarness } from '../../support/harness.ts';
import { liveRun, recordOf } from '../../support/live-run.ts';

let harness: Harness;

beforeAll(async () => {
  harness = await openHarness(null, { account: '', objects: { annotations: 0, views: 9 } });
});

afterAll(() => harness.close());

describe.concurrent('expunge priority', () => {
  it('changes the share of a live run, says what was and what is, and keeps who did it and why', async () => {
    const run = await liveRun(harness, 'changed', '--priority', 'low');
    const ended = await harness.expunge(['priority', run, 'high', '--reason', 'needed today', '--json']);
    expect(ended.code).toBe(0);
    expect(ended.stderr).toContain(`Run ${run}: priority high; before: low. It takes effect within a second.`);
    expect(JSON.parse(ended.stdout)).toEqual({
      v: 1,
      type: 'priority',
      run,
      state: 'running',
      priority: 'high',
      before: { priority: 'low' },
    });
    expect((await recordOf(run)).audit[0]).toMatchObject({
      action: 'priority',
      by: 'operator',
      who: expect.stringContaining('@'),
      reason: 'needed today',
      priority: 'high',
    });
    expect((await harness.expunge(['status', run])).stdout).toContain('priority high');
    expect((await harness.expunge(['priority', run, 'high'])).stderr).toContain('has that priority already: high');
  });

  it('follows the same list when it is given again with another one', async () => {
    const run = await liveRun(harness, 'again');
    expect(await liveRun(harness, 'again', '--priority', 'high')).toBe(run);
    expect(await liveRun(harness, 'again')).toBe(run);
    expect((await harness.expunge(['status', run])).stdout).toContain('priority high');
  });

  it('refuses a run that has ended, and a word that is none', async () => {
    const run = await liveRun(harness, 'ended');
    const unknown = await harness.expunge(['priority', run, 'hihg']);
    expect([unknown.code, unknown.stderr]).toEqual([
      2,
      expect.stringContaining('"hihg" is not one of high, normal, low'),
    ]);
    await harness.expunge(['cancel', run, '--yes']);
    const late = await harness.expunge(['priority', run, 'high']);
    expect([late.code, late.stderr]).toEqual([2, expect.stringContaining(`error: run ${run} is cancelled`)]);
  });
});
