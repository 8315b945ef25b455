import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { readEvents } from '../../../src/ledger/outbox.ts';
import { keys } from '../../../src/redis/keys.ts';
import { publishNewChanges } from '../../../src/worker/event-sources.ts';
import { type AtEnd, openHarness } from '../../support/harness.ts';
import { annotations, makeIds } from '../../support/ids.ts';
import { until } from '../../support/processes.ts';
import { openTestRedis } from '../../support/redis.ts';

const ids = makeIds('s', 3);
const hour = 3_600_000;

async function open(atEnd: AtEnd) {
  const harness = await openHarness(atEnd, { objects: annotations(ids) });
  const list = harness.list(ids);
  const line = ['run', list, '--resource', 'annotations', '--yes', '--detach'];
  return { harness, list, line };
}

test('a retry that inherits a grace period shows its start, and refuses a --stop-at before it', async () => {
  const { harness, line } = await open(onTestFinished);
  await harness.expunge([...line, '--grace', '2h']);
  const { id } = await harness.onlyRun();
  await harness.expunge(['cancel', id, '--yes']);
  const stopAt = new Date(Date.now() + hour).toISOString();
  const retry = ['retry', id, '--detach', '--yes'];
  expect(await harness.expunge([...retry, '--stop-at', stopAt])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('comes before the start of the run'),
  });
  const retried = await harness.expunge(retry);
  expect(retried.stderr).toContain('Starts    2 h after it is accepted');
});

test('apply shows the start that the grace period of its plan gives', async () => {
  const { harness, list } = await open(onTestFinished);
  const plan = await harness.plan([list, '--resource', 'annotations', '--grace', '2h']);
  const applied = await harness.expunge(['apply', plan, '--yes', '--detach']);
  expect(applied.stderr).toContain('Starts    2 h after it is accepted');
});

test.each([
  ['EXPUNGE_GRACE=1min', { EXPUNGE_GRACE: '1min' }],
  ['EXPUNGE_GRACE=none', { EXPUNGE_GRACE: 'none' }],
])('the same command without --grace, under %s, does not start the run earlier', async (_, env) => {
  const { harness, line } = await open(onTestFinished);
  await harness.expunge([...line, '--grace', '2h']);
  const { startsAt } = await harness.onlyRun();
  expect((await harness.expunge(line, { env })).code).toBe(0);
  expect((await harness.onlyRun()).startsAt).toBe(startsAt);
});

test('a grace period of more than a year is refused, of a run and of a target', async () => {
  const { harness, line } = await open(onTestFinished);
  const refused = { code: 2, stderr: expect.stringContaining('at most 365d') };
  for (const time of ['366d', '99999999999d']) {
    expect(await harness.expunge([...line, '--grace', time])).toMatchObject(refused);
    expect(await harness.expunge(['target', 'grace', time])).toMatchObject(refused);
  }
  expect(await harness.expunge([...line, '--grace', '365d'])).toMatchObject({ code: 0 });
  expect(await harness.expunge(['runs'])).toMatchObject({ code: 0 });
});

test('receivers learn once that a run waits for its start, however often it is paused, and not after its cancel', async () => {
  const { harness, line } = await open(onTestFinished);
  const redis = await openTestRedis();
  onTestFinished(() => redis.disconnect());
  const waits = async () => {
    for (const { id } of await harness.runs()) await publishNewChanges(redis, id);
    const events = await readEvents(redis, harness.target.fp, 0, 100);
    return events.map(({ event }) => event).filter(({ type }) => type === 'run.waiting');
  };
  await harness.expunge([...line, '--grace', '2h', '--label', 'ticket=OPS-7']);
  const { id } = await harness.onlyRun();
  expect(await waits()).toMatchObject([{ data: { run: id, labels: { ticket: 'OPS-7' } } }]);
  for (const verb of ['pause', 'resume']) await harness.expunge([verb, id]);
  expect(await waits()).toHaveLength(1);
  await harness.expunge(['cancel', id, '--yes']);
  await harness.expunge([...line, '--grace', '3h']);
  const next = (await harness.runs()).find((run) => run.id !== id)!;
  await harness.expunge(['cancel', next.id, '--yes']);
  expect(await waits()).toHaveLength(1); // nothing will be deleted any more when it is told
});

test('a worker looks at Redis every second while a run waits for its start, and no more often', async () => {
  const { harness, line } = await open(onTestFinished);
  const redis = await openTestRedis();
  onTestFinished(() => redis.disconnect());
  await harness.expunge([...line, '--grace', '2h']);
  await harness.worker([]);
  const looks = async () => Number(await redis.hget(keys.witness(harness.target.fp), 'looks'));
  await until('it looks', looks);
  const before = await looks();
  await sleep(4_500);
  expect((await looks()) - before).toBeGreaterThanOrEqual(3);
  expect((await looks()) - before).toBeLessThanOrEqual(6);
});
