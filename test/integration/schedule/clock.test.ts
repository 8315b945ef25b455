import { expect, test, vi } from 'vitest';
import { readClock } from '../../../src/redis/client.ts';
import { openRedisClock } from '../../../src/redis/clock.ts';
import { keys } from '../../../src/redis/keys.ts';
import { openScheduleHarness } from '../../support/schedule-harness.ts';

const minute = 60_000;

test('a worker whose clock is 5 minutes fast starts no occurrence before it is due by the clock of Redis', async ({
  onTestFinished,
}) => {
  const stage = await openScheduleHarness(onTestFinished);
  stage.list(['v-1']);
  const key = keys.schedules(stage.target.fp);
  const now = await readClock(stage.redis, key);
  const due = new Date(Math.ceil(now / minute) * minute + 2 * minute);
  const cron = `${due.getUTCMinutes()} ${due.getUTCHours()} * * *`;
  stage.now = now - minute;
  await stage.add({ cron });
  const realNow = Date.now.bind(Date);
  const fast = vi.spyOn(Date, 'now').mockImplementation(() => realNow() + 5 * minute);
  onTestFinished(() => fast.mockRestore());
  const clock = openRedisClock(stage.redis, key);
  await stage.at(now, { now: clock.now, syncClock: clock.sync });
  expect(await stage.history()).toEqual([]);
  expect(await stage.runs()).toEqual([]);
  await stage.at(now, { now: Date.now, syncClock: async () => {} });
  expect(await stage.history(), 'negative control: by its own clock it is due').toHaveLength(1);
});
