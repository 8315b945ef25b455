import { expect, test } from 'vitest';
import { parseRun } from '../../../src/ledger/run.ts';
import { brakeTexts } from '../../../src/terminal/rehearsal-text.ts';

const ended = { state: 'completed', rows: '1000', ids: '1000', deleted: '996', failed: '3', unknown: '1' };
const halted = { ...ended, state: 'halted', deleted: '388', failed: '10', unknown: '2' };

test.each([
  ['no brake', ended, ['no brake was set, and no rule of expunge stopped it']],
  [
    'brakes that held',
    { ...ended, maxFailures: '10', canaryOf: '10,100' },
    ['did not stop it: --max-failures 10, --canary 10,100'],
  ],
  [
    'a brake that stopped it, beside one that did not',
    { ...halted, halt: 'max_failures', maxFailures: '10', canaryOf: '10' },
    ['halted after 12 failures, with 400 of 1,000 ids settled: --max-failures 10', 'did not stop it: --canary 10'],
  ],
  [
    'a rule of expunge',
    { ...halted, halt: 'forbidden', maxDeletes: '900' },
    ['halted after 12 failures, with 400 of 1,000 ids settled: forbidden', 'did not stop it: --max-deletes 900'],
  ],
  [
    'a time that is up',
    { ...ended, state: 'paused', halt: 'time_up', deleted: '100', failed: '0', unknown: '0', maxActiveMs: '60000' },
    ['paused after 0 failures, with 100 of 1,000 ids settled: --max-duration 1min'],
  ],
])('what the brakes did: %s', (_, fields, texts) => {
  expect(brakeTexts(parseRun('r1', fields))).toEqual(texts);
});
