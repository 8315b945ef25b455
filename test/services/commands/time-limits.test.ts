import { expect, test } from 'vitest';
import { keys } from '../../../src/redis/keys.ts';
import { summaryIn } from '../../support/command.ts';
import { openHarness } from '../../support/harness.ts';

test('a command ends when the time of its run is up, says so, and the same command goes on', async ({
  onTestFinished,
}) => {
  const harness = await openHarness(onTestFinished, { objects: { annotations: 40, views: 0 } });
  const list = harness.list(Array.from({ length: 40 }, (_, n) => `a-${String(n + 1).padStart(6, '0')}`));
  const command = [list, '--resource', 'annotations', '--yes', '--json'];
  const stopAt = new Date(Date.now() + 5_000).toISOString();
  const first = await harness.run([...command, '--rate', '1/s', '--stop-at', stopAt]);
  const summary = summaryIn(first);
  expect([first.code, summary.exit, summary.state]).toEqual([4, 4, 'paused']);
  expect(first.stderr).toMatch(/^Run \S+ stopped: the moment of --stop-at has come\. \d+ of 40 ids are settled/m);
  expect(first.stderr).toContain('Resume with the same command');
  const again = await harness.run([...command, '--stop-at', stopAt]);
  expect(again).toMatchObject({ code: 2, stderr: expect.stringContaining('which is in the past') });
  await harness.redis.hset(keys.run(summary.run), 'stopAt', Date.now() - 1); // as if an operator had paused it before
  const last = await harness.run([...command, '--rate', '1000/s', '--max-duration', '1h']);
  expect([last.code, last.stderr]).toEqual([0, expect.stringContaining('Pauses    after 1 h of deleting;')]);
  expect(summaryIn(last)).toMatchObject({ run: summary.run, deleted: 40 });
  expect(harness.sandbox.seen).toHaveLength(40);
});
