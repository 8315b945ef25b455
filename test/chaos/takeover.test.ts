import { expect, onTestFinished, test } from 'vitest';
import { takeoverMs } from '../support/takeover.ts';

test('the chunk of a worker that was killed is taken over within 15 s', async () => {
  expect(await takeoverMs(onTestFinished, 20)).toBeLessThan(15_000);
});
