import { expect, test } from 'vitest';
import { until } from '../support/processes.ts';
import { findOverlap, freshIds, openScheduleWorkers, runsEnd, workerWith } from '../support/schedules.ts';

const killEveryMs = 7_000;

test('never two runs at once: every second, runs of 2.5 s, four workers, one of them killed every 7 s, for 30 runs', async ({
  onTestFinished,
}) => {
  const crowd = await openScheduleWorkers(onTestFinished, 4);
  const { harness, workers } = crowd;
  let kills = 0;
  const killer = setInterval(() => {
    workers[kills % workers.length]!.signal('SIGKILL');
    const n = kills++ % workers.length;
    void workerWith(harness, `again-${kills}.json`, { fresh: freshIds('odd', 25) }).then((worker) => {
      workers[n] = worker;
    });
  }, killEveryMs);
  onTestFinished(() => clearInterval(killer));
  await runsEnd(crowd, 30, 1_800_000);
  clearInterval(killer);
  await until(
    'nothing is left half made',
    async () => (await harness.runs()).every(({ state }) => state === 'completed'),
    60_000,
  );
  expect(await findOverlap(crowd)).toBeNull();
  expect(kills).toBeGreaterThan(5);
  console.log(`${(await harness.runs()).length} runs, ${kills} kills, never two at once`);
}, 3_600_000);
