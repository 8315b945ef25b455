import { expect, test } from 'vitest';
import { statusProblem } from '../../../src/http/send-once.ts';

test.for([
  [199, 'it answers 199'],
  [200, ''],
  [204, ''],
  [299, ''],
  [300, 'it answers 300, a redirect, which is not followed'],
  [399, 'it answers 399, a redirect, which is not followed'],
  [400, 'it answers 400'],
  [503, 'it answers 503'],
] as const)('a receiver that answers %i is told of as "%s"', ([status, words]) => {
  expect(statusProblem(status)).toBe(words);
});
