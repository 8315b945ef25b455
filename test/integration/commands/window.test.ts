import { expect, test } from 'vitest';
import { summaryIn } from '../../support/command.ts';
import { openHarness } from '../../support/harness.ts';

/** The time of day in so many hours, in UTC. */
const inHours = (hours: number) => new Date(Date.now() + hours * 3_600_000).toISOString().slice(11, 16);

test('a command whose window is closed sends nothing and says when it goes on; status says so, and it can be cancelled', async ({
  onTestFinished,
}) => {
  const harness = await openHarness(onTestFinished, { objects: { annotations: 3, views: 0 } });
  const list = harness.list(['a-000001', 'a-000002']);
  const opens = inHours(2);
  const window = `${opens}-${inHours(3)}`;
  const running = harness.start(['run', list, '--resource', 'annotations', '--yes', '--json', '--window', window]);
  const { id } = await harness.runIs('found closed', ({ closedUntil }) => closedUntil > 0);
  const words = `outside its window, continues [A-Z][a-z]{2} ${opens} UTC`;
  expect((await harness.expunge(['status', id])).stdout).toMatch(
    new RegExp(`Waiting until .* \\((2 h|1 h \\d+ min)\\): ${words}\\.`),
  );
  const status = await harness.expunge(['status', id, '--json']);
  expect(summaryIn(status)).toMatchObject({
    state: 'running',
    reason: expect.stringMatching(new RegExp(`^${words}$`)),
  });
  expect((await harness.expunge(['cancel', id, '--yes'])).code).toBe(0);
  expect((await running.ended).code).toBe(3);
  expect(harness.sandbox.seen).toEqual([]);
});
