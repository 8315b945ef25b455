import { expect, test } from 'vitest';
import { BodyCounter } from '../../../src/worker/body-counter.ts';

/** A counter, and what it stored: the sum of the highest totals of each run, as Redis has it. */
function openCounter() {
  const stored = new Map<string, Map<string, number>>();
  const calls: string[] = [];
  const redis = { isAway: false, losesAnswer: false };
  const counter = new BodyCounter(async (run, name, answers) => {
    if (redis.isAway) throw new Error('away');
    calls.push(`${run} ${answers}`);
    stored.set(run, (stored.get(run) ?? new Map<string, number>()).set(name, answers));
    if (redis.losesAnswer) throw new Error('no answer');
  });
  const sum = (run: string) => [...(stored.get(run)?.values() ?? [])].reduce((sum, answers) => sum + answers, 0);
  const note = (run: string, times = 1) => {
    for (let n = 0; n < times; n++) counter.note(run);
  };
  return { counter, calls, redis, note, sum };
}

test('answers with a body are stored once, run by run, and where there are none nothing is asked of Redis', async () => {
  const { counter, calls, note } = openCounter();
  await counter.flush();
  note('a', 2);
  note('b');
  await counter.flush();
  await counter.flush();
  note('a');
  await counter.flush();
  expect(calls).toEqual(['a 2', 'b 1', 'a 3']);
});

test('what Redis did not take, or did not say it took, is stored with the next ones and counted once', async () => {
  const { counter, redis, note, sum } = openCounter();
  note('a', 2);
  redis.isAway = true;
  await expect(counter.flush()).rejects.toThrow('away');
  expect(sum('a')).toBe(0);
  redis.isAway = false;
  redis.losesAnswer = true;
  await expect(counter.flush()).rejects.toThrow('no answer');
  note('a');
  redis.losesAnswer = false;
  await counter.flush();
  expect(sum('a')).toBe(3);
});

test('one that comes while a flush waits for Redis is stored by the next flush', async () => {
  const { counter, calls, note } = openCounter();
  note('a');
  const flushing = counter.flush();
  note('a');
  await flushing;
  await counter.flush();
  expect(calls).toEqual(['a 1', 'a 2']);
});

test('a process of many runs forgets old ones, and still counts all of theirs if they go on', async () => {
  const { counter, note, sum } = openCounter();
  const runs = Array.from({ length: 150 }, (_, n) => `run-${n}`);
  for (const round of [1, 2, 3]) {
    for (const run of runs) note(run, round);
    await counter.flush();
  }
  expect(new Set(runs.map(sum))).toEqual(new Set([6]));
});
