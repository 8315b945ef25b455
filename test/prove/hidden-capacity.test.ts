import { expect, onTestFinished, test } from 'vitest';
import { measureCapacity } from '../support/hidden-capacity.ts';

const cases = [10, 100].flatMap((serviceMs) => [1, 4].map((workers) => ({ serviceMs, workers })));

test.each(cases)(
  'a server that serves 20 at once, $serviceMs ms each, has 15 to 25 in the house with $workers workers',
  async (hidden) => {
    const { mean, words } = await measureCapacity({ ...hidden, atEnd: onTestFinished }, 20, 30);
    console.log(words);
    expect(mean).toBeGreaterThanOrEqual(15);
    expect(mean).toBeLessThanOrEqual(25);
  },
);
