import { describe, expect, test } from 'vitest';
import { RequestMeter, RunMeter } from '../../../src/delete/meters.ts';
import { noContent } from '../../../src/delete/verdict.ts';
import { settle, unmark, untouched } from '../../../src/ledger/cell.ts';
import { latencyBounds, latencyBucket } from '../../../src/ledger/measures.ts';
import { sentOutcomes } from '../../../src/model/outcome.ts';
import { status, timeout } from './tries.ts';

test('counts answers by status, and requests without one by why', () => {
  const meter = new RequestMeter();
  for (const answer of [noContent, noContent, status(503)]) meter.recordAnswer(answer, 1, 27);
  meter.recordAnswer({ kind: 'maybe-sent', code: 'timeout', why: '' }, 10_000, 133);
  meter.recordAnswer({ kind: 'not-sent', why: 'ECONNREFUSED' }, 1, 27);
  expect(Object.fromEntries(meter.codes)).toEqual({ 204: 2, 503: 1, timeout: 1, not_sent: 1 });
  expect([meter.latencySumMs, meter.latencies[27]]).toEqual([3, 3]);
});

test('counts by class what comes after forty different answers, so that no server makes it grow', () => {
  const meter = new RequestMeter();
  for (let n = 0; n < 2; n++) for (let code = 400; code < 600; code++) meter.recordAnswer(status(code), 1, 27);
  expect(meter.codes.length).toBeLessThan(50);
  expect(Object.fromEntries(meter.codes)).toMatchObject({ 204: 0, 400: 2, '4xx': 120, '5xx': 200 });
  expect(meter.codes.reduce((sum, [, n]) => sum + n, 0)).toBe(400);
});

test('counts what is settled by outcome, and leaves out what is put back', () => {
  const meter = new RequestMeter();
  const cells = [
    settle('deleted', 1, 116),
    settle('deleted', 2, 116),
    settle('failed', 1, 311),
    unmark(untouched, 1, true),
  ];
  meter.recordResults(cells.map((cell, index) => ({ index, cell })));
  const none = Object.fromEntries(sentOutcomes.map((outcome) => [outcome, 0]));
  expect(Object.fromEntries(meter.outcomes)).toEqual({ ...none, deleted: 2, failed: 1 });
});

test.each(latencyBounds)(
  'an answer after exactly $seconds s is within that bound, one a little later is not',
  (bound) => {
    expect(latencyBucket(bound.seconds * 1_000)).toBe(bound.bucket);
    expect(latencyBucket(bound.seconds * 1_001)).toBeGreaterThan(bound.bucket);
  },
);

test('counts why ids are sent once more, and settled ids only among the outcomes', () => {
  const meter = new RequestMeter();
  meter.recordRetry('status');
  meter.recordRetry('status');
  meter.recordRetry('outage');
  expect(Object.fromEntries(meter.retries)).toEqual({ status: 2, outage: 1 });
  meter.recordResults([{ index: 0, cell: 0x1fff }]);
  expect(meter.outcomes.every(([, ids]) => ids === 0)).toBe(true);
});

describe('run meter', () => {
  const taken = (meter: RunMeter) => Object.fromEntries(meter.take().changes);

  test('counts requests, refusals and how long answers took, once', () => {
    const meter = new RunMeter(() => 0);
    meter.recordAnswer(status(204), 7, 3, true);
    meter.recordAnswer(status(204), 7, 3, true);
    meter.recordAnswer(status(429), 7, 5, false);
    meter.recordAnswer(timeout, 7, 9, false);
    expect(taken(meter)).toEqual({ requests: 4, refused: 1, busyMs: 28, l3: 2, l5: 1 });
    expect(taken(meter)).toEqual({});
  });

  test('counts anew after its sums were taken', () => {
    const meter = new RunMeter(() => 0);
    meter.recordAnswer(status(429), 7, 1, false);
    meter.take();
    meter.recordAnswer(status(204), 7, 2, true);
    expect(taken(meter)).toEqual({ requests: 1, busyMs: 7, l2: 1 });
  });

  test('adds up what it is told, and names nothing that did not happen', () => {
    const meter = new RunMeter(() => 0);
    expect(taken(meter)).toEqual({});
    meter.add('workMs', 5);
    meter.add('workMs', 7);
    meter.add('heldMs', 1);
    expect(taken(meter)).toEqual({ workMs: 12, heldMs: 1 });
  });
});
