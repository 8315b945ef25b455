import { expect, test } from 'vitest';
import { withoutRepeats } from '../../src/logger.ts';

test('a line that several processes tell at the same time is told once', () => {
  let now = 0;
  const told: string[] = [];
  const tell = withoutRepeats(
    (line) => told.push(line),
    () => now,
  );
  for (const line of ['a', 'b', 'a', 'b']) tell(line);
  expect(told.splice(0)).toEqual(['a', 'b']);
  now = 1_999;
  tell('a');
  expect(told).toEqual([]);
  now = 3_999;
  tell('a');
  expect(told).toEqual(['a']);
});
