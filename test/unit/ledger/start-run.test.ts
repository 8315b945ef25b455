import { expect, test } from 'vitest';
import type { Ledger } from '../../../src/ledger/ledger.ts';
import type { Run } from '../../../src/ledger/run.ts';
import { startRun } from '../../../src/ledger/start-run.ts';

test.each([
  ['planned', 'operator', { from: 'planned', reason: '' }],
  ['paused', 'signal', { from: 'paused', reason: 'again', seen: 3 }],
  ['paused', 'operator', null],
  ['halted', 'guard', { from: 'halted', reason: 'again', seen: 3 }],
  ['running', 'operator', null],
] as const)('a run that is %s by %s is started: %o', async (state, by, expected) => {
  const taken: unknown[] = [];
  const take = async (...steering: unknown[]) => ({ isStale: taken.push(steering) === 0 });
  const ledger = { steer: take } as unknown as Ledger;
  const run = { id: 'r', state, by, revision: 3 } as Run;
  expect(await startRun(ledger, run, { who: 'me', reason: 'again' })).toBe(true);
  const steering = { action: 'start', by: 'operator', who: 'me' };
  expect(taken).toEqual(expected === null ? [] : [['r', expect.any(Number), { ...steering, ...expected }]]);
});
