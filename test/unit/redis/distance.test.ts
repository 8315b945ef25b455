import { expect, test } from 'vitest';
import { Distance, distanceText, near, roundTripText } from '../../../src/redis/distance.ts';

/** A distance after these round trips, each as often as its second number says. */
function seen(...roundTrips: readonly (readonly [ms: number, times: number])[]): Distance {
  const distance = new Distance();
  for (const [ms, times] of roundTrips) for (let n = 0; n < times; n++) distance.observe(ms);
  return distance;
}

function spansOf({ answerMs, leadMs, aheadMs }: Distance) {
  return { answerMs, leadMs, aheadMs };
}

test('a near Redis adds nothing to any time', () => {
  expect(spansOf(new Distance())).toEqual(near);
  expect(spansOf(seen([0.3, 5], [20, 5]))).toEqual(near);
});

test.for([30, 62, 150, 500, 1_500])('a Redis %i ms away is so far from its second answer on', (ms) => {
  const distance = seen([2 * ms, 1], [ms, 1]); // the first call also loads its script
  expect(distance.saidMs).toBe(ms);
  expect(distance.leadMs).toBeGreaterThanOrEqual(2.5 * ms); // a lease comes back, an update ends, a mark goes and comes
  expect(distance.aheadMs - distance.leadMs).toBeGreaterThanOrEqual(ms); // there is enough until the next lease
});

test('one stall is not a distance', () => {
  expect(spansOf(seen([1, 19], [800, 1]))).toEqual(near);
  expect(spansOf(seen([1, 18], [800, 2]))).not.toEqual(near);
});

test('follows a distance that changes, there and back', () => {
  expect(seen([5, 20], [200, 2]).aheadMs).toBe(3.5 * 200);
  expect(spansOf(seen([5, 20], [200, 20], [5, 20]))).toEqual(near);
});

test('says a distance again only if it has changed by a quarter', () => {
  expect(seen([29, 20]).saidMs).toBe(0);
  expect(seen([62.4, 20]).saidMs).toBe(62);
  expect(seen([62.4, 20], [70, 20]).saidMs).toBe(62);
  expect(seen([62.4, 20], [90, 20]).saidMs).toBe(90);
  expect(seen([30, 20], [25, 20]).saidMs).toBe(30);
  expect(seen([30, 20], [2, 20]).saidMs).toBe(0);
});

test('a far Redis is described by what it costs', () => {
  expect(distanceText(29)).toBe('');
  expect(distanceText(150)).toBe(
    'Redis is 150 ms away: a run begins about 7.5 s later, and a pause or a stop takes up to 1.3 s; run expunge nearer to it',
  );
  expect([0.42, 62.4, 1_500].map(roundTripText)).toEqual(['0.4 ms', '62 ms', '1.5 s']);
});
