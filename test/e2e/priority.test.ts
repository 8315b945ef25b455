import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type CliHarness, openCliHarness } from '../support/cli-harness.ts';
import { liveRun, recordOf } from '../support/live-run.ts';

let place: CliHarness;

beforeAll(async () => {
  place = await openCliHarness({ objects: { annotations: 0, views: 9 } });
});

afterAll(() => place.close());

describe.concurrent('expunge priority', () => {
  it('changes the share of a live run, says what was and what is, and keeps who did it and why', async () => {
    const run = await liveRun(place, 'changed', '--priority', 'low');
    const ended = await place.expunge(['priority', run, 'high', '--reason', 'needed today', '--json']);
    expect(ended.code).toBe(0);
    expect(ended.stderr).toContain(`Run ${run}: priority high; before: low. It takes effect within a second.`);
    expect(JSON.parse(ended.stdout)).toEqual({
      ...{ v: 1, type: 'priority', run, state: 'running', priority: 'high' },
      before: { priority: 'low' },
    });
    expect((await recordOf(run)).audit[0]).toMatchObject({
      ...{ action: 'priority', by: 'operator', who: expect.stringContaining('@'), reason: 'needed today' },
      priority: 'high',
    });
    expect((await place.expunge(['status', run])).stdout).toContain('priority high');
    expect((await place.expunge(['priority', run, 'high'])).stderr).toContain('has that priority already: high');
  });

  it('follows the same list when it is given again with another one', async () => {
    const run = await liveRun(place, 'again');
    expect(await liveRun(place, 'again', '--priority', 'high')).toBe(run);
    expect(await liveRun(place, 'again')).toBe(run);
    expect((await place.expunge(['status', run])).stdout).toContain('priority high');
  });

  it('refuses a run that has ended, and a word that is none', async () => {
    const run = await liveRun(place, 'ended');
    const unknown = await place.expunge(['priority', run, 'hihg']);
    expect([unknown.code, unknown.stderr]).toEqual([
      2,
      expect.stringContaining('"hihg" is not one of high, normal, low'),
    ]);
    await place.expunge(['cancel', run, '--yes']);
    const late = await place.expunge(['priority', run, 'high']);
    expect([late.code, late.stderr]).toEqual([2, expect.stringContaining(`error: run ${run} is cancelled`)]);
  });
});
