import { createHmac } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openHarness } from '../../support/harness.ts';
import { annotations, makeIds } from '../../support/ids.ts';
import { until } from '../../support/processes.ts';
import { openReceiver } from '../../support/receiver.ts';

const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';

test('a worker with --notify and --results tells of a run before its start and at its end, and delivers it with its labels', async ({
  onTestFinished,
}) => {
  const ids = makeIds('n', 6);
  const harness = await openHarness(onTestFinished, { objects: annotations(ids) });
  const receiver = await openReceiver(onTestFinished);
  const results = join(harness.folder, 'results');
  const args = ['--results', results, '--notify', `${receiver.url}/verschwiegen`];
  const worker = await harness.worker(args, {
    EXPUNGE_DASHBOARD_URL: 'https://ops.example.com',
    EXPUNGE_NOTIFY_SECRET: secret,
  });
  const events = () => receiver.received.map(({ body }) => JSON.parse(body));
  const list = ['--resource', 'annotations', '--detach', '--yes', '--grace', '2h'];
  await harness.run([harness.list(ids), ...list, '--label', 'ticket=OPS-77']);
  await until('it is told that it waits', () => events().length === 2);
  const { id } = await harness.onlyRun();
  await harness.expunge(['cancel', id, '--yes']);
  await until('its end is told', () => events().length === 3);
  expect(events().map(({ type }) => type)).toEqual(['run.running', 'run.waiting', 'run.cancelled']);
  expect(events()[1].data).toMatchObject({ run: id, why: 'grace', pending: 6, next: `expunge cancel ${id}` });
  expect(events()[1].data.url).toBe(`https://ops.example.com/runs/${id}`);
  for (const { headers, body, path, method } of receiver.received) {
    const signed = `${headers['webhook-id']}.${headers['webhook-timestamp']}.${body}`;
    const key = Buffer.from(secret.slice('whsec_'.length), 'base64');
    expect(headers['webhook-signature']).toBe(`v1,${createHmac('sha256', key).update(signed).digest('base64')}`);
    expect([method, path, headers['content-type']]).toEqual(['POST', '/verschwiegen', 'application/json']);
  }
  expect(worker.stderr).not.toMatch(/verschwiegen|whsec_/);

  await harness.runIs('delivered', ({ resultsAt }) => resultsAt > 0);
  expect(readdirSync(results)).toEqual([id]);
  const summary = JSON.parse(readFileSync(join(results, id, 'summary.json'), 'utf8'));
  expect(summary).toMatchObject({ state: 'cancelled', not_attempted: 6, labels: { ticket: 'OPS-77' } });
  expect((await harness.expunge(['status', id])).stdout).toContain(`results: ${join(results, id)} on `);
  expect((await harness.expunge(['runs'])).stdout).toContain(join(results, id));
  expect(harness.sandbox.seen).toEqual([]);
});
