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
