import { describe, expect, onTestFinished, test } from 'vitest';
import type { Config } from '../../../src/config/settings.ts';
import { restoreSchedulePause } from '../../../src/ledger/target-actions.ts';
import type { AddAction } from '../../../src/operations/add-schedule.ts';
import { localSchedules } from '../../../src/operations/local-schedules.ts';
import { closeQueueConnection, openQueueConnection } from '../../../src/redis/connect.ts';
import { readAudit } from '../../../src/schedule/schedule-store.ts';
import { testRedisAddress } from '../../support/redis.ts';
import { minute, openScheduleHarness, someIds, start } from '../../support/schedule-harness.ts';
import { aDefinition } from '../../support/schedules.ts';

const ana = { who: 'ana@test', reason: '' };
const ben = { who: 'ben@test', reason: 'legal hold' };

/** A schedule `nightly` whose list has five ids, and the actions that this machine can give. */
async function openSchedules() {
  const harness = await openScheduleHarness(onTestFinished);
  const queueConnection = openQueueConnection(testRedisAddress());
  onTestFinished(() => closeQueueConnection(queueConnection));
  const { redis, target, work } = harness;
  const { sources, stateDir, env, log } = work;
  const place = { config: { sources, stateDir } as Config, env, log };
  const schedules = localSchedules({ redis, ledger: work.ledger, queueConnection }, place);
  await harness.add();
  harness.list(someIds('v', 5));
  const action = { target, name: 'nightly', by: ana };
  const seen = async () => (await harness.schedule()).revision;
  return { harness, schedules, action, seen, stop: new AbortController().signal };
}

type Stage = Awaited<ReturnType<typeof openSchedules>>;
type Change = (stage: Stage) => Promise<unknown>;

const replaced = (definition: Partial<AddAction['definition']>): Change => {
  return ({ schedules, action }) => schedules.add({ ...action, definition: aDefinition(definition), replace: true });
};
const paused: Change = ({ schedules, action }) => schedules.pause({ ...action, by: ben });

/** A guard pauses it for a list that is too long. */
const guarded: Change = async ({ harness }) => {
  harness.list(someIds('x', 101));
  await harness.at(start + minute);
  harness.list(someIds('v', 5));
};
const restored: Change = ({ harness: { redis, target } }) =>
  restoreSchedulePause(redis, target.fp, 'nightly', { id: 'lost', who: 'ben@test', reason: '', at: start });

const stateOf = async ({ harness }: Stage) => {
  const { state, cron } = await harness.schedule();
  return { state, cron, runs: (await harness.runs()).length };
};

const actions: Record<string, (stage: Stage, seen: number) => Promise<unknown>> = {
  resume: ({ schedules, action }, seen) => schedules.resume({ ...action, seen }),
  remove: ({ schedules, action }, seen) => schedules.remove({ ...action, seen }),
  run: ({ schedules, action, stop }, seen) => schedules.run({ ...action, seen, stop }),
  add: ({ schedules, action }, seen) =>
    schedules.add({ ...action, seen, replace: true, definition: aDefinition({ cron: '0 5 * * *' }) }),
};

describe('an action for a schedule', () => {
  test.each<[string, string, Change, Change]>([
    ['resume', 'a colleague has paused it as well', paused, ({ schedules, action }) => schedules.pause(action)],
    ['resume', 'it was replaced', paused, replaced({ maxGrowth: 9 })],
    [
      'resume',
      'it went on and a guard has paused it',
      async (stage) => {
        await paused(stage);
      },
      async (stage) => {
        await stage.schedules.resume({ ...stage.action, seen: await stage.seen() });
        await guarded(stage);
      },
    ],
    ['remove', 'a colleague has paused it', async () => {}, paused],
    ['remove', 'its pause was lost, and written again', async () => {}, restored],
    ['run', 'it was replaced', async () => {}, replaced({ settings: { resource: 'views', maxDeletes: '99' } })],
    ['run', 'a guard has paused it', async () => {}, guarded],
    ['add', 'it was replaced', async () => {}, replaced({ cron: '0 4 * * *' })],
  ])('to %s it changes nothing if %s since it was shown', async (action, _, before, change) => {
    const stage = await openSchedules();
    await before(stage);
    const shown = await stage.seen();
    await change(stage);
    const is = await stateOf(stage);
    const refusal = { code: 'GUARD', message: expect.stringContaining('has changed since it was shown') };
    await expect(actions[action]!(stage, shown)).rejects.toMatchObject(refusal);
    expect(await stateOf(stage)).toEqual(is);
    await actions[action]!(stage, await stage.seen()).catch(({ code }) => expect(code).toBe('none'));
    expect(await stateOf(stage)).not.toEqual(is);
  });

  test('is taken for what was shown, whatever runs of it were made meanwhile', async () => {
    const stage = await openSchedules();
    const shown = await stage.seen();
    await stage.harness.at(start + minute);
    await stage.harness.finish((await stage.harness.schedule()).lastRun);
    stage.harness.list(someIds('w', 5));
    const { made } = await stage.schedules.run({ ...stage.action, seen: shown, stop: stage.stop });
    expect(made).toMatchObject({ outcome: 'started', ids: 5 });
    expect((await stage.harness.runs()).length).toBe(2);
  });

  test('to pause it needs nothing that was seen', async () => {
    const stage = await openSchedules();
    await replaced({ cron: '0 4 * * *' })(stage);
    await paused(stage);
    expect(await stateOf(stage)).toMatchObject({ state: 'paused' });
  });

  test('that is repeated changes nothing more', async () => {
    const stage = await openSchedules();
    const { schedules, action, harness } = stage;
    await paused(stage);
    const seen = await stage.seen();
    await paused(stage);
    expect(await stage.seen()).toBe(seen);
    for (let n = 0; n < 2; n++) await schedules.resume({ ...action, seen });
    const trail = await readAudit(harness.redis, harness.target.fp, 'nightly');
    expect(trail.map(({ action }) => action)).toEqual(['resume', 'pause', 'add']);
  });

  test('names who gave it, and why', async () => {
    const { schedules, action, harness } = await openSchedules();
    const { facts } = await schedules.pause({ ...action, by: ben });
    expect(facts).toMatchObject({ state: 'paused', who: 'ben@test', reason: 'legal hold' });
    expect(await schedules.find(harness.target, 'nightly')).toMatchObject({
      state: 'paused',
      revision: facts.revision,
    });
  });
});

test('a run of a schedule that the end of its last run pauses meanwhile is not made', async () => {
  const { harness, schedules, action, stop } = await openSchedules();
  await harness.at(start + minute);
  const shown = await harness.schedule();
  await harness.finish(shown.lastRun, { absent: 5 });
  harness.list(someIds('w', 5));
  const made = schedules.run({ ...action, seen: shown.revision, stop });
  await expect(made).rejects.toMatchObject({ code: 'GUARD' });
  expect([(await harness.schedule()).state, (await harness.runs()).length]).toEqual(['paused', 1]);
});
