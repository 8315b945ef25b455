import { describe, test } from 'vitest';
import { headers, openExpressTarget } from '../support/express-target.ts';
import { passed, startRun } from '../support/fleet.ts';
import { openHarness } from '../support/harness.ts';
import { makeIds } from '../support/ids.ts';
import { until } from '../support/processes.ts';
import { percent, sharesOf, takenIn } from '../support/rate-measures.ts';
import { isFull, sized } from '../support/size.ts';

// A limiter that people use, in each way in which it tells what is left, or does not.

type Case = { told: keyof typeof headers; perWindow: number; windowS: number };

const told = Object.keys(headers) as Case['told'][];
const cases: Case[] = [
  ...told.map((kind) => ({ told: kind, perWindow: 300, windowS: 1 })),
  ...(isFull ? told.map((kind) => ({ told: kind, perWindow: 3_000, windowS: 60 })) : []),
];

describe.concurrent('express-rate-limit', () => {
  test.for(cases)(
    'is used nearly whole: $told, $perWindow in $windowS s',
    async (limit, { expect, onTestFinished }) => {
      const windowMs = 1_000 * limit.windowS;
      const perSecond = limit.perWindow / limit.windowS;
      const options = { ...headers[limit.told], windowMs, limit: limit.perWindow };
      const { url, arrivals } = await openExpressTarget(onTestFinished, options);
      const [warmUp, measured] = limit.windowS === 1 ? sized([110, 10], [30, 30]) : [150, 300];
      const harness = await openHarness(onTestFinished, {});
      const ids = makeIds('e', Math.ceil(1.5 * perSecond * (warmUp + measured)) + limit.perWindow);
      await startRun(harness, ids, [], { EXPUNGE_BASE_URL: url });
      const startedMs = await until('the first request arrives', () => arrivals.atMs[0]);
      const sharesUntil = (toMs: number) =>
        sharesOf(takenIn(arrivals, { fromMs: toMs - 1_000 * measured, toMs }), perSecond);
      const toMs = startedMs + 1_000 * (warmUp + measured);
      // In short the machine is not ours alone, and takes its time.
      const isUsed = () => {
        const seen = sharesUntil(performance.now());
        return performance.now() > startedMs + 15_000 && seen.used > 0.5 && seen;
      };
      if (isFull) await passed(toMs, 0);
      const { used, refused } = isFull ? sharesUntil(toMs) : await until('half of it is used', isUsed, 120_000);
      const words = `${limit.told}, ${limit.perWindow} in ${limit.windowS} s: used ${percent(used)}, 429 ${percent(refused)}`;
      console.log(words);
      if (isFull) expect(used, words).toBeGreaterThan(0.95);
      expect(refused, words).toBeLessThan(sized(0.1, 0.01));
    },
  );
});
