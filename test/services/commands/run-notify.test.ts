import { expect, test } from 'vitest';
import { readEvents } from '../../../src/ledger/outbox.ts';
import { openHarness } from '../../support/harness.ts';
import { annotations, makeIds } from '../../support/ids.ts';
import { openReceiver, type ReceiverServer } from '../../support/receiver.ts';

const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';

function typesOf({ received }: ReceiverServer): string[] {
  return received.filter(({ status }) => status === 200).map(({ body }) => JSON.parse(body).type);
}

const flags = ['--resource', 'annotations', '--confirm', '3'];

test('an attended run posts its end before its command ends, once though a worker has the same receiver', async ({
  onTestFinished,
}) => {
  const ids = makeIds('n', 3);
  const harness = await openHarness(onTestFinished, { objects: annotations(ids) });
  const receiver = await openReceiver(onTestFinished);
  await harness.worker(['--notify', receiver.url]);
  const env = { EXPUNGE_NOTIFY_SECRET: secret };
  const { code, stderr } = await harness.expunge(['run', harness.list(ids), ...flags, '--notify', receiver.url], {
    env,
  });
  expect([code, stderr.includes('warning')]).toEqual([0, false]);
  expect(typesOf(receiver)).toEqual(['run.running', 'run.completed']);
  const last = receiver.received.at(-1)!;
  expect(JSON.parse(last.body)).toMatchObject({ data: { deleted: 3, pending: 0, exit: 0 } });
});

test('a receiver that is away changes no exit code, is named in one line, and its events stay', async ({
  onTestFinished,
}) => {
  const ids = makeIds('n', 3);
  const harness = await openHarness(onTestFinished, { objects: annotations(ids) });
  const receiver = await openReceiver(onTestFinished);
  receiver.answer = () => 503;
  const { code, stderr } = await harness.expunge([
    'run',
    harness.list(ids),
    ...flags,
    '--notify',
    `${receiver.url}/geheim`,
  ]);
  expect(code).toBe(0);
  const lines = stderr.split('\n').filter((line) => line.includes('not all events were posted'));
  expect(lines).toEqual([expect.stringContaining(`warning: not all events were posted to ${receiver.url}: `)]);
  expect(stderr).not.toContain('geheim');
  const events = await readEvents(harness.redis, harness.target.fp, 0, 10);
  expect(events.map(({ event }) => event.type)).toEqual(['run.running', 'run.completed']);
});

test('retry and apply post what becomes of their runs, as run does', async ({ onTestFinished }) => {
  const ids = makeIds('n', 3);
  const script = (_: string, id: string, nth: number) => (id === ids[0] && nth === 1 ? 'status-400' : null);
  const harness = await openHarness(onTestFinished, { objects: annotations(ids), faults: { script } });
  const receiver = await openReceiver(onTestFinished);
  const list = harness.list(ids);
  const notify = ['--notify', receiver.url];
  const plan = await harness.plan([list, '--resource', 'annotations']);
  expect(await harness.expunge(['apply', plan, '--yes', ...notify])).toMatchObject({ code: 3 });
  expect(typesOf(receiver)).toEqual(['run.running', 'run.completed']);
  const { id } = await harness.onlyRun();
  expect(await harness.expunge(['retry', id, '--yes', ...notify])).toMatchObject({ code: 0 });
  expect(typesOf(receiver).slice(2)).toEqual(['run.running', 'run.completed']);
  const runs = receiver.received.map(({ body }) => JSON.parse(body).data.run);
  expect(runs.filter((run) => run === id)).toHaveLength(2);
});

test('Ctrl-C posts that the run is paused before its command ends', async ({ onTestFinished }) => {
  const ids = makeIds('n', 200);
  const harness = await openHarness(onTestFinished, { objects: annotations(ids) });
  const receiver = await openReceiver(onTestFinished);
  const list = harness.list(ids);
  const slow = ['--resource', 'annotations', '--yes', '--rate', '20/s', '--notify', receiver.url];
  const running = harness.start(['run', list, ...slow]);
  await harness.runIs('deleting', ({ counts }) => counts.deleted > 0);
  running.signal('SIGINT');
  expect(await running.ended).toMatchObject({ code: 130 });
  expect(typesOf(receiver)).toEqual(['run.running', 'run.paused']);
  expect(JSON.parse(receiver.received.at(-1)!.body)).toMatchObject({ data: { by: 'interrupt' } });
});
