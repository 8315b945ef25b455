import { describe, type ExpectStatic, test } from 'vitest';
import { openFleet, startFleet, startRun } from '../../support/fleet.ts';
import { openHarness } from '../../support/harness.ts';
import { annotations, makeIds } from '../../support/ids.ts';
import { type Held, held, inAnySecond, measureKnownRate } from '../../support/known-rate.ts';
import { until } from '../../support/processes.ts';
import { busiest, perSecondIn, takenIn, watchTicks } from '../../support/rate-measures.ts';

function expectHeld(expect: ExpectStatic, { busiest, allowed }: Held, words?: string): void {
  expect(busiest, words).toBeLessThanOrEqual(allowed);
}

describe('a known rate, measured at the server for a minute', () => {
  test.for([
    ['target limit', 1_000, 4],
    ['target limit', 50, 4],
    ['run --detach --rate', 1_000, 4],
    ['run --detach --rate', 50, 4],
    ['run --rate', 200, 1],
  ] as const)(
    'holds in every second and is used: %s %i/s with %i processes',
    async ([way, perSecond, workers], { expect, onTestFinished }) => {
      const seen = await measureKnownRate({ perSecond, way, workers, atEnd: onTestFinished }, 60);
      console.log(seen.words);
      expectHeld(expect, seen);
      expect(seen.longRun).toBeGreaterThanOrEqual(0.97);
      expect(seen.longRun).toBeLessThanOrEqual(1.002);
    },
  );
});

describe.concurrent('a known rate', () => {
  test('keeps a quota in every minute, however it falls into the pace', async ({ expect, onTestFinished }) => {
    const runArgs = ['--rate', '50/s,100/min'];
    const { harness } = await openFleet(onTestFinished, { ids: 200, workers: 2, runArgs });
    const { atMs } = harness.sandbox.arrivals;
    await until('the quota is used', () => atMs.length >= 99);
    await until('seconds have passed', () => performance.now() > atMs[98]! + 5_000);
    expect(atMs.length).toBeLessThanOrEqual(100);
  });
});

describe.concurrent('a process that stood still', () => {
  test.for(['run --rate', 'target limit'] as const)(
    'does not make up for it in one burst: %s',
    async (way, { expect, onTestFinished }) => {
      const perSecond = 200;
      const rate = `${perSecond}/s`;
      const { harness, ticks, processes } = await openFleet(onTestFinished, {
        ids: 20 * perSecond,
        ...(way === 'run --rate' ? { workers: 0, runArgs: ['--rate', rate] } : { workers: 2, limit: rate }),
      });
      const { atMs } = harness.sandbox.arrivals;
      const [victim] = processes;
      await until('it is on its way', () => atMs.length > perSecond);
      for (let n = 1; n <= 3; n++) {
        victim!.signal('SIGSTOP');
        const stoppedAt = performance.now();
        await until('a second has passed', () => performance.now() > stoppedAt + 1_000);
        victim!.signal('SIGCONT');
        const wokenAt = performance.now();
        await until('it has gone on for a while', () => atMs.at(-1)! > wokenAt + 1_000);
      }
      expect(busiest(atMs, ticks)).toBeLessThanOrEqual(inAnySecond(perSecond));
    },
  );
});

describe.concurrent('the limit of a target', () => {
  test('is never exceeded by two runs together', async ({ expect, onTestFinished }) => {
    const perSecond = 200;
    const runs = [makeIds('one', 10 * perSecond), makeIds('two', 10 * perSecond)] as const;
    const harness = await openHarness(onTestFinished, { objects: annotations(runs.flat()) });
    const { ticks } = await startFleet(onTestFinished, harness, runs[0], { workers: 2, limit: `${perSecond}/s` });
    await startRun(harness, runs[1], ['--detach']);
    const sent = (name: string) => harness.sandbox.seen.filter((request) => request.includes(`/${name}-`)).length;
    await until('both are in the middle', () => sent('one') > 3 * perSecond && sent('two') > 2 * perSecond);
    expectHeld(expect, held(perSecond, harness.sandbox.arrivals.atMs, ticks));
  });

  test('does not slow another target', async ({ expect, onTestFinished }) => {
    const slow = await openFleet(onTestFinished, { ids: 500, workers: 1, limit: '5/s' });
    const other = await openFleet(onTestFinished, { ids: 4_000, workers: 1, limit: '200/s' });
    const { arrivals } = other.harness.sandbox;
    await until('the fast one goes at its rate', () => {
      const toMs = performance.now();
      return toMs > other.startedMs + 3_000 && perSecondIn(arrivals, { fromMs: toMs - 2_000, toMs }) > 190;
    });
    expectHeld(expect, held(5, slow.harness.sandbox.arrivals.atMs, slow.ticks));
  });
});

describe.concurrent('expunge rate', () => {
  test('holds on a live run within a second, down, up and with "none"', async ({ expect, onTestFinished }) => {
    const runArgs = ['--rate', '200/s'];
    const { harness } = await openFleet(onTestFinished, { ids: 30_000, workers: 2, runArgs });
    const { arrivals } = harness.sandbox;
    const { id } = await harness.onlyRun();
    const { stop, ticks } = watchTicks();
    onTestFinished(async () => stop());
    const change = async (rate: string) => {
      expect(await harness.spawn(['rate', id, rate]).ended).toMatchObject({ code: 0 });
      return performance.now();
    };
    const lasts = async (fromMs: number, ms: number) => {
      await until('it lasted', () => performance.now() > fromMs + ms);
      return takenIn(arrivals, { fromMs, toMs: fromMs + ms }).requests;
    };
    await lasts(performance.now(), 1_000);

    const downMs = await change('40/s');
    await lasts(downMs + 1_000, 3_000);
    const after = arrivals.atMs.filter((at) => at > downMs + 1_000);
    expectHeld(expect, held(40, after, ticks));

    const upMs = await change('300/s');
    await until('it is faster', async () => (await lasts(performance.now(), 1_000)) > 0.9 * 300);
    const faster = arrivals.atMs.filter((at) => at > upMs);
    expectHeld(expect, held(300, faster, ticks));

    await change('none');
    await until('nothing holds it back', async () => (await lasts(performance.now(), 500)) > 300);
  });
});
