import { expect, onTestFinished, test } from 'vitest';
import { describeLoss, loseTail } from '../support/lost-tail.ts';

test.each([1, 2, 3])('a Redis that loses the last tenth of its file costs certainty only, round %i', async () => {
  const seen = await loseTail({ ids: 20_000, kills: true, atEnd: onTestFinished });
  console.log(describeLoss(seen));
  expect(seen.broken).toBeNull();
  expect(seen.forgotten).toBeGreaterThan(100);
  expect(seen.run).toMatchObject({ state: 'completed', doubt: expect.stringMatching(/^Redis was restarted/) });
});

test('would have deleted objects called absent if nobody noticed', async () => {
  const seen = await loseTail({ ids: 20_000, careless: true, atEnd: onTestFinished });
  console.log(describeLoss(seen), seen.broken);
  expect(seen.broken).toMatch(/^"absent was never deleted by us" is broken/);
});
