import { expect, onTestFinished, test } from 'vitest';
import { keys } from '../../src/redis/keys.ts';
import type { HistoryEntry } from '../../src/schedule/schedule.ts';
import { readHistory } from '../../src/schedule/schedule-store.ts';
import { type AtEnd, type Harness, openHarness } from '../support/harness.ts';
import { type Running, until } from '../support/processes.ts';
import { addSchedule, freshIds, workerWith } from '../support/schedules.ts';

const killEveryMs = 7_000;

test('never two runs at once: every second, runs of 2.5 s, four workers, one of them killed every 7 s, for 30 runs', async () => {
  const crowd = await openScheduleWorkers(onTestFinished, 4);
  const { harness, workers } = crowd;
  let kills = 0;
  const starts: Promise<void>[] = [];
  const killer = setInterval(() => {
    workers[kills % workers.length]!.signal('SIGKILL');
    const n = kills++ % workers.length;
    const start = async () => {
      workers[n] = await workerWith(harness, `again-${kills}.json`, { fresh: freshIds('odd', 25) });
    };
    starts.push(start());
  }, killEveryMs);
  onTestFinished(() => clearInterval(killer));
  await runsEnd(crowd, 30, 1_800_000);
  clearInterval(killer);
  await Promise.all(starts);
  const isDone = async () => (await harness.runs()).every(({ state }) => state === 'completed');
  await until('nothing is left half made', isDone, 60_000);
  expect(await findOverlap(crowd)).toBeNull();
  expect(kills).toBeGreaterThan(5);
  console.log(`${(await harness.runs()).length} runs, ${kills} kills, never two at once`);
});

type ScheduleWorkers = { harness: Harness; workers: Running[]; history(): Promise<HistoryEntry[]> };

/**
 * A schedule that is due every second, whose runs take 2.5 s, and so many workers, of which every second one defines its source in another way.
 */
async function openScheduleWorkers(atEnd: AtEnd, count: number): Promise<ScheduleWorkers> {
  const harness = await openHarness(atEnd);
  await addSchedule(harness, 'often', '--cron', '* * * * * *', '--from', 'fresh', '--rate', '10/s', '--expect-absent');
  const start = (n: number) => workerWith(harness, `${n}.json`, { fresh: freshIds(n % 2 === 0 ? 'even' : 'odd', 25) });
  const workers = await Promise.all(Array.from({ length: count }, (_, n) => start(n)));
  return { harness, workers, history: () => readHistory(harness.redis, harness.target.fp, 'often') };
}

/** Waits until so many runs of the crowd have ended. */
async function runsEnd({ harness }: ScheduleWorkers, count: number, deadlineMs: number): Promise<void> {
  const ended = async () => (await harness.runs()).filter(({ state }) => state === 'completed').length >= count;
  await until(`${count} runs have ended`, ended, deadlineMs);
}

/** What shows that two runs were under way at once, or that an occurrence had two; null where nothing does. */
async function findOverlap({ harness, history }: ScheduleWorkers): Promise<string | null> {
  const runs = (await harness.runs()).toSorted((a, b) => a.startedAt - b.startedAt);
  for (const [n, run] of runs.entries()) {
    const before = runs[n - 1];
    if (before !== undefined && run.startedAt < before.endedAt) return `${run.id} began before ${before.id} had ended`;
    if (before !== undefined && before.endedAt === 0) return `${run.id} began while ${before.id} was under way`;
  }
  const lists = harness.sandbox.seen.map((path) => /(even|odd)-\d+/.exec(path)?.[0] ?? path);
  const changes = lists.filter((list, n) => list !== lists[n - 1]);
  if (new Set(changes).size !== changes.length) return 'requests of two runs were mixed';
  const occurrences = (await history())
    .filter(({ outcome }) => outcome === 'started')
    .map(({ occurrence }) => occurrence);
  if (new Set(occurrences).size !== occurrences.length) return 'an occurrence had two runs';
  const made = await harness.redis.keys(keys.scheduleOccurrence(harness.target.fp, 'often', 0).replace(/0$/, '*'));
  return made.length >= runs.length ? null : `${runs.length} runs were made for ${made.length} occurrences`;
}
