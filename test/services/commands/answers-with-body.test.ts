import { expect, test } from 'vitest';
import { openBodyServer } from '../../support/body-server.ts';
import { openHarness } from '../../support/harness.ts';
import { makeIds } from '../../support/ids.ts';

test('answers that are a 204 with a body are counted over all processes that delete a run', async ({
  onTestFinished,
}) => {
  const ids = makeIds('b', 1_500);
  const server = await openBodyServer(onTestFinished, 'samePacket');
  const harness = await openHarness(onTestFinished);
  const env = { EXPUNGE_BASE_URL: server.url };
  await harness.worker(['--max-concurrency', '2'], env);
  await harness.spawnWorker(['--max-concurrency', '2'], env);
  await harness.run([harness.list(ids), '--resource', 'annotations', '--yes', '--detach'], { env });
  const run = await harness.runIs('counted', ({ bodies }) => bodies === ids.length);
  await harness.runIs('completed', ({ state }) => state === 'completed');
  expect((await harness.onlyRun()).counts).toMatchObject({ deleted: ids.length });
  expect((await harness.expunge(['status', run.id])).stdout).toContain('1,500 answers were 204 with a body');
});
