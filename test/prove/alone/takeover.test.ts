import { expect, onTestFinished, test } from 'vitest';
import { takeoverMs } from '../../support/takeover.ts';

const rounds = 5;
const targets = 4;

test('the chunk of a worker that was killed is taken over within 15 s at p95, 25 s at most', async () => {
  const took: number[] = [];
  // Killed at different moments of the chunk, several targets at once.
  for (let round = 0; round < rounds; round++) {
    const some = Array.from({ length: targets }, (_, i) => takeoverMs(onTestFinished, 10 + 7 * (targets * round + i)));
    took.push(...(await Promise.all(some)));
  }
  took.sort((a, b) => a - b);
  console.log(`takeover in ms: ${took.map(Math.round).join(' ')}`);
  expect(took[Math.ceil(0.95 * took.length) - 1]).toBeLessThan(15_000);
  expect(took.at(-1)).toBeLessThan(25_000);
});
