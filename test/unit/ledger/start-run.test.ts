import { expect, test } from 'vitest';
import type { Ledger } from '../../../src/ledger/ledger.ts';
import type { Run } from '../../../src/ledger/run.ts';
import { startRun } from '../../../src/ledger/start-run.ts';

test.each([
  ['planned', 'operator', { from: 'planned', reason: '' }],
  ['paused', 'signal', { from: 'paused', reason: 'again' }],
  ['paused', 'operator', null],
  ['halted', 'guard', { from: 'halted', reason: 'again' }],
  ['running', 'operator', null],
] as const)('a run that is %s by %s is started: %o', async (state, by, expected) => {
  const orders: unknown[] = [];
  const ledger = { steer: async (...order: unknown[]) => orders.push(order) } as unknown as Ledger;
  await startRun(ledger, { id: 'r', state, by } as Run, { who: 'me', reason: 'again' });
  const order = { action: 'start', by: 'operator', who: 'me' };
  expect(orders).toEqual(expected === null ? [] : [['r', expect.any(Number), { ...order, ...expected }]]);
});
