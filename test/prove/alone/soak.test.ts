import { expect, onTestFinished, test } from 'vitest';
import { soak } from '../../support/soak.ts';

// SOAK_SECONDS=20 tries it in short.
const seconds = Number(process.env.SOAK_SECONDS ?? 600);

test(`two workers that delete 2,000 ids a second for ${seconds} s in bad weather neither grow nor lose anything`, async () => {
  const { ids, runs, remaining, counted, idle, early, late, lanes, words } = await soak({
    seconds,
    perSecond: 2_000,
    atEnd: onTestFinished,
  });
  console.log(words);
  const sum = (outcome: 'deleted' | 'gone_unconfirmed') =>
    runs.reduce((total, { counts }) => total + counts[outcome], 0);
  expect(sum('deleted') + sum('gone_unconfirmed')).toBe(ids);
  expect(remaining).toBe(0);
  expect(counted).toBeGreaterThanOrEqual(ids);
  expect(late.rssMb).toBeLessThan(1.15 * early.rssMb + 10);
  expect(late.fds).toBeLessThan(idle.fds + lanes + 16); // how many lanes are in use is learned
  expect(late.handles).toBeLessThan(early.handles + lanes / 2);
  expect(late.keys).toBeLessThan(1.25 * early.keys + 20);
  expect(late.redisMb).toBeLessThan(1.25 * early.redisMb + 2);
});
