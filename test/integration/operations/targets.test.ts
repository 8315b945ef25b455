import { randomUUID } from 'node:crypto';
import { describe, expect, onTestFinished, test } from 'vitest';
import { noteLoss, restoreBound } from '../../../src/ledger/target-actions.ts';
import { parseRate } from '../../../src/model/rate.ts';
import { targetOf } from '../../../src/model/target.ts';
import { localTargets } from '../../../src/operations/local-targets.ts';
import { openTestRedis } from '../../support/redis.ts';

const ana = { who: 'ana@test', reason: '' };
const ben = { who: 'ben@test', reason: 'legal hold' };
const limit = parseRate('5/s');

async function openTarget() {
  const redis = await openTestRedis();
  onTestFinished(() => void redis.disconnect());
  const target = targetOf(`https://${randomUUID()}.example.com`, '');
  const targets = localTargets({ redis });
  const lose = (id: string) => {
    const loss = { id, what: `schedule ${id}`, at: 1 };
    return noteLoss(redis, target.fp, loss, { id, type: 'lost' } as never);
  };
  return { redis, target, targets, lose, action: { target, by: ana } };
}

type Stage = Awaited<ReturnType<typeof openTarget>>;
type Change = (stage: Stage) => Promise<unknown>;

const stoppedBy = (by: typeof ana): Change => {
  return ({ targets, target }) => targets.stop({ target, by });
};
const limitOf = (text: string): Change => {
  return async ({ targets, action }) =>
    targets.setLimit({ ...action, limit: parseRate(text), seen: await seenOf({ targets, action }) });
};
const limitRestored: Change = ({ redis, target }) =>
  restoreBound(redis, target.fp, 'limit', { id: 'lost', bound: '7/1000', who: 'ben@test', reason: '', at: 1 });

const seenOf = async ({ targets, action }: Pick<Stage, 'targets' | 'action'>) =>
  (await targets.status(action.target)).revision;

const actions: Record<string, (stage: Stage, seen: number) => Promise<unknown>> = {
  start: ({ targets, action }, seen) => targets.start({ ...action, seen }),
  'set a limit': ({ targets, action }, seen) => targets.setLimit({ ...action, limit, seen }),
  'end a limit': ({ targets, action }, seen) => targets.setLimit({ ...action, limit: null, seen }),
  acknowledge: ({ targets, action }, seen) => targets.acknowledge({ ...action, seen }),
};

describe('an action for a target', () => {
  test.each<[string, string, Change, Change]>([
    ['start', 'a colleague has stopped it as well', stoppedBy(ana), stoppedBy(ben)],
    ['set a limit', 'its lost limit was written again', async () => {}, limitRestored],
    ['end a limit', 'it has another limit', limitOf('9/day'), limitOf('8/day')],
    ['acknowledge', 'more was lost', ({ lose }) => lose('a'), ({ lose }) => lose('b')],
  ])('to %s changes nothing if %s since it was shown', async (name, _, before, change) => {
    const stage = await openTarget();
    await before(stage);
    const shown = await seenOf(stage);
    await change(stage);
    const is = await stage.targets.record(stage.target);
    const refusal = { code: 'GUARD', message: expect.stringContaining('have changed since they were shown') };
    await expect(actions[name]!(stage, shown)).rejects.toMatchObject(refusal);
    const { learned: _learned, ...status } = is.status;
    expect(await stage.targets.record(stage.target)).toMatchObject({ status, trail: is.trail });
    expect(await actions[name]!(stage, await seenOf(stage))).toMatchObject({ isChanged: true });
  });

  test('to stop it needs nothing that was seen, and repeated it changes nothing', async () => {
    const stage = await openTarget();
    const { targets, action } = stage;
    await stoppedBy(ben)(stage);
    expect(await targets.stop(action)).toMatchObject({ isChanged: true });
    const seen = await seenOf(stage);
    expect(await targets.stop(action)).toMatchObject({ isChanged: false, status: { revision: seen } });
    const { reached } = await targets.startAll({ ...action, allAccounts: false });
    expect(reached).toMatchObject([{ isChanged: true, known: { stops: { target: { who: 'ben@test' } } } }]);
  });
});
