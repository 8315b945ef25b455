import { describe, test } from 'vitest';
import { steerSchedule } from '../../../src/schedule/schedule-store.ts';
import { families } from '../../../src/worker/http/metrics.ts';
import { openScrape, type Scrape } from '../../../src/worker/http/scrape.ts';
import { minute, openScheduleHarness, type ScheduleHarness, someIds, start } from '../../support/schedule-harness.ts';

/** What a scrape of a worker of the target would show of its schedules: the samples that are 1. */
async function scrape(harness: ScheduleHarness): Promise<string[]> {
  const service = { queue: { depth: async () => ({}) } } as unknown as Scrape['service'];
  const build = { version: '1', revision: '' };
  const clock = () => performance.now();
  const look = openScrape({ build, service, redis: harness.redis, fp: harness.target.fp, queueName: 'q', clock });
  const seen = await look();
  return families
    .filter(({ name }) => name.startsWith('expunge_schedule_'))
    .flatMap(({ name, read }) => read(seen).map(({ value, labels }) => ({ name, value, ...labels })))
    .filter(({ value }) => value === 1)
    .map(({ name, value, ...labels }) => [name.replace('expunge_schedule_', ''), ...Object.values(labels)].join(' '));
}

describe.concurrent('the metrics of a worker', () => {
  test('show a schedule, and what became of its last slot', async ({ expect, onTestFinished }) => {
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

  test('tell a pause by a guard from one by somebody', async ({ expect, onTestFinished }) => {
    const harness = await openScheduleHarness(onTestFinished);
    await harness.add();
    harness.list([]);
    await harness.at(start + minute);
    expect(await scrape(harness)).toEqual(['state nightly paused_by_guard', 'last_result nightly refused']);
    const order = { at: harness.now, by: 'operator', who: 'ana@test', reason: '' } as const;
    await steerSchedule(harness.redis, harness.target.fp, 'nightly', 'resume', order);
    await steerSchedule(harness.redis, harness.target.fp, 'nightly', 'pause', order);
    expect(await scrape(harness)).toEqual(['state nightly paused', 'last_result nightly refused']);
    await steerSchedule(harness.redis, harness.target.fp, 'nightly', 'remove', order);
    expect(await scrape(harness)).toEqual([]);
  });
});
