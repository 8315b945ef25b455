import { describe, test } from 'vitest';
import { deleteFarAway } from '../../support/far-redis.ts';
import { percent } from '../../support/rate-measures.ts';

// A server with a limit of 100/s, real processes, and a Redis at any distance. Prints the table.

const perSecond = 100;
const roundTripsMs = [1, 30, 60, 150, 500, 1_500];
const rows = [1, 4].flatMap((processes) =>
  ['', `--rate ${perSecond}/s`].flatMap((rate) => roundTripsMs.map((ms) => [ms, processes, rate] as const)),
);

describe('a Redis far away', () => {
  test.for(rows)('%i ms, processes: %i %s', async ([ms, processes, rate], { expect, onTestFinished }) => {
    const ids = 6_000;
    const runArgs = rate === '' ? [] : rate.split(' ');
    const all = Array.from({ length: processes }, () => ms);
    const seen = await deleteFarAway(onTestFinished, { roundTripsMs: all, perSecond, ids, runArgs });
    const refused = seen.refused / seen.requests;
    const first = `first request after ${seen.firstS.toFixed(1)} s`;
    console.log(
      `${ms} ms, ${processes} × ${rate || 'learned'}: ${seen.perSecond.toFixed(1)}/s, at last ${seen.steady.toFixed(1)}/s, refused ${percent(refused)}, ${first}`,
    );
    expect(seen.settled).toBe(ids);
    expect(refused).toBeLessThanOrEqual(0.04);
  });

  test('while another process is near: both send, and what is promised holds', async ({ expect, onTestFinished }) => {
    const ways = [1, 1_500];
    const ids = 6_000;
    const seen = await deleteFarAway(onTestFinished, { roundTripsMs: ways, perSecond, ids });
    const refused = seen.refused / seen.requests;
    console.log(`1 ms and 1,500 ms: ${seen.perSecond.toFixed(1)}/s, refused ${percent(refused)}`);
    expect(seen.settled).toBe(ids);
    expect(refused).toBeLessThanOrEqual(0.04);
  });
});
