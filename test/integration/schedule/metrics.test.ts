import { describe, test } from 'vitest';
import { steerSchedule } from '../../../src/schedule/schedule-store.ts';
import { families } from '../../../src/worker/http/metrics.ts';
import { openScrape, type Scrape } from '../../../src/worker/http/scrape.ts';
import { until } from '../../support/processes.ts';
import { minute, openScheduleHarness, type ScheduleHarness, someIds, start } from '../../support/schedule-harness.ts';

/** Each sample that a scrape of a worker of the target would show of its schedules. */
async function samples(harness: ScheduleHarness): Promise<{ value: number; words: string }[]> {
  const service = {} as unknown as Scrape['service'];
  const build = { version: '1', revision: '' };
  const clock = () => performance.now();
  const look = openScrape({
    build,
    service,
    redis: harness.redis,
    target: harness.target,
    clock,
    now: () => harness.now,
  });
  const seen = await until('Redis answers within the second of a scrape', async () => {
    const seen = await look();
    return seen.redis && seen;
  });
  return families
    .filter(({ name }) => name.startsWith('expunge_schedule_'))
    .flatMap(({ name, read }) => read(seen).map(({ value, labels }) => ({ name, value, ...labels })))
    .map(({ name, value, ...labels }) => ({
      value,
      words: [name.replace('expunge_schedule_', ''), ...Object.values(labels)].join(' '),
    }));
}

/** Those that are 1: the words for state and result. */
async function scrape(harness: ScheduleHarness): Promise<string[]> {
  return (await samples(harness)).filter(({ value }) => value === 1).map(({ words }) => words);
}

describe.concurrent('the metrics of a worker', () => {
  test('show a schedule, and what became of its last occurrence', async ({ expect, onTestFinished }) => {
    const harness = await openScheduleHarness(onTestFinished);
    await harness.add();
    expect(await scrape(harness)).toEqual(['state nightly active']);
    harness.list(someIds('v', 5));
    await harness.at(start + minute);
    expect(await scrape(harness)).toEqual(['state nightly active', 'last_result nightly started']);
    await harness.finish((await harness.schedule()).lastRun);
    await harness.at(start + minute + 1_000);
    expect(await scrape(harness)).toEqual(['state nightly active', 'last_result nightly completed']);
  });

  test('show how late a schedule is', async ({ expect, onTestFinished }) => {
    const harness = await openScheduleHarness(onTestFinished);
    const times = async () => (await samples(harness)).filter(({ words }) => /_seconds/.test(words));
    await harness.add();
    expect(await times()).toEqual([{ words: 'late_seconds nightly', value: 0 }]);
    harness.now = start + minute + 20_000; // nobody was there to handle it
    expect(await times()).toEqual([{ words: 'late_seconds nightly', value: 20 }]);
    harness.list(someIds('v', 5));
    await harness.at(harness.now);
    expect(await times()).toEqual([{ words: 'late_seconds nightly', value: 0 }]);
    const author = { at: harness.now, by: 'operator', who: 'ana@test', reason: '' } as const;
    await steerSchedule(harness.redis, harness.target.fp, 'nightly', 'pause', author);
    expect(await times()).toEqual([{ words: 'late_seconds nightly', value: 0 }]);
  });

  test('tell a pause by a guard from one by somebody', async ({ expect, onTestFinished }) => {
    const harness = await openScheduleHarness(onTestFinished);
    await harness.add();
    harness.list([]);
    await harness.at(start + minute);
    expect(await scrape(harness)).toEqual(['state nightly paused_by_guard', 'last_result nightly refused']);
    const author = { at: harness.now, by: 'operator', who: 'ana@test', reason: '' } as const;
    await steerSchedule(harness.redis, harness.target.fp, 'nightly', 'resume', author);
    await steerSchedule(harness.redis, harness.target.fp, 'nightly', 'pause', author);
    expect(await scrape(harness)).toEqual(['state nightly paused', 'last_result nightly refused']);
    await steerSchedule(harness.redis, harness.target.fp, 'nightly', 'remove', author);
    expect(await scrape(harness)).toEqual([]);
  });
});
