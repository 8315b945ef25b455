import { expect, test } from 'vitest';
import { Backoff } from '../../../src/worker/backoff.ts';

test('waits twice as long after each failure, up to the most, and not at all after a success', () => {
  const backoff = new Backoff({ firstMs: 100, maxMs: 350, random: () => 1 });
  const waited = () => [99, 100, 199, 200, 349, 350].map((ms) => backoff.isWaiting(ms));
  expect(backoff.isWaiting(0)).toBe(false);
  backoff.failed(0);
  expect(waited()).toEqual([true, false, false, false, false, false]);
  backoff.failed(0);
  expect(waited()).toEqual([true, true, true, false, false, false]);
  for (let n = 0; n < 100; n++) backoff.failed(0);
  expect(waited()).toEqual([true, true, true, true, true, false]);
  backoff.succeeded();
  expect([backoff.isWaiting(0), backoff.failures]).toEqual([false, 0]);
});

test('waits shorter by up to a half, by chance', () => {
  const backoff = new Backoff({ firstMs: 100, maxMs: 100, random: () => 0 });
  backoff.failed(0);
  expect([backoff.isWaiting(49), backoff.isWaiting(50)]).toEqual([true, false]);
});
