import { describe, expect, it } from 'vitest';
import { RunMeter } from '../../../src/delete/meters.ts';
import { noContent } from '../../../src/delete/verdict.ts';
import { settle, unmark, untouched } from '../../../src/ledger/cell.ts';
import { status, timeout } from './tries.ts';

const start = 1_800_000_000_000;

/** A meter, and how to let time pass. */
function openMeter() {
  let now = start;
  const meter = new RunMeter(() => now);
  const at = (ms: number) => {
    now = start + ms;
  };
  const taken = () => meter.take().slices.sort((a, b) => a.second - b.second);
  return { meter, at, taken };
}

describe('what a process did for a run, by the second', () => {
  it('counts a request in the second in which it was sent', () => {
    const { meter, at, taken } = openMeter();
    at(990);
    meter.recordAnswer(noContent, 20, 40, true);
    at(1_010);
    meter.recordAnswer(status(429), 20, 40, false);
    at(1_040);
    meter.recordAnswer(noContent, 20, 40, true);
    expect(taken()).toMatchObject([
      { second: start / 1_000, requests: 2, refused: 1, deleted: 1 },
      { second: start / 1_000 + 1, requests: 1, refused: 0, deleted: 1 },
    ]);
    expect(taken()).toEqual([]);
  });

  it('spreads the time of a slow answer over the seconds that it took', () => {
    const { meter, at, taken } = openMeter();
    at(3_250);
    meter.recordAnswer(timeout, 2_500, 120, false);
    expect(taken().map(({ requests, busyMs }) => [requests, busyMs])).toEqual([
      [1, 250],
      [0, 1_000],
      [0, 1_000],
      [0, 250],
    ]);
  });

  it('counts other results when they are in the ledger, and a 204 with its answer', () => {
    const { meter, taken } = openMeter();
    const cells = [settle('deleted', 1, 116), settle('failed', 1, 311), unmark(untouched, 1, true)];
    meter.recordResults(cells.map((cell, index) => ({ index, cell })));
    meter.recordAnswer(status(204), 0, 0, true);
    expect(taken()).toMatchObject([{ deleted: 1, failed: 1, absent: 0 }]);
  });

  it('counts in thousandths what a low rate allows', () => {
    const { meter, taken } = openMeter();
    meter.add('allowed', 0.03);
    meter.add('limitedMs', 100);
    meter.add('refreshes', 1);
    expect(taken()).toMatchObject([{ allowed: 30, limitedMs: 100 }]);
  });
});
