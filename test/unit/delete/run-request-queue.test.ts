import { expect, test } from 'vitest';
import { RunRequestQueue } from '../../../src/delete/run-request-queue.ts';

test('a run whose permits went unused does not wait for its quota: it may get them again', () => {
  let now = 0;
  const line = new RunRequestQueue(() => now);
  const reply = { state: 'running', now: 0, first: 0, gap: 10, priority: '', quotaUntil: 0 };
  line.receive({ ...reply, rate: '100/1000,10/86400000', count: 10, nextAt: 100 }, 0);
  expect(line.waitMs).toBe(0);
  line.receive({ ...reply, rate: '100/1000,10/86400000', count: 0, nextAt: 1_000_000 }, 0);
  now = 500; // all are too late
  expect(line.waitMs).toBe(0);
  expect(line.takeUnused()).toBe(10);
  expect(line.waitMs).toBe(0);
  line.receive({ ...reply, rate: '100/1000,10/86400000', count: 0, nextAt: 1_000_000 }, 0);
  expect(line.waitMs).toBe(999_500);
});
