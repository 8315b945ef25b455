import { expect, test } from 'vitest';
import { restartAfterMs } from '../../../src/worker/supervisor.ts';

test.each([
  [1, 500, 1_000],
  [2, 1_000, 2_000],
  [5, 8_000, 16_000],
  [6, 15_000, 30_000],
  [1_000, 15_000, 30_000],
])('start number %i after an end comes after %i to %i ms', (failures, least, most) => {
  expect(restartAfterMs(failures, 0)).toBe(least);
  expect(restartAfterMs(failures, 1)).toBe(most);
});
