import { describe, expect, test } from 'vitest';
import type { OutcomeRow } from '../../../src/ledger/outcome-rows.ts';
import { FailureGroups } from '../../../src/report/run-files.ts';

describe('failure groups', () => {
  test('groups bad rows by outcome and reason, the largest first, with three ids each', () => {
    const groups = new FailureGroups();
    const add = (outcome: OutcomeRow['outcome'], code: string, ids: string[]) => {
      for (const id of ids) groups.add({ outcome, code, id } as OutcomeRow);
    };
    add('unknown', 'timeout', ['u1']);
    add('failed', 'http_409', ['a']);
    add('failed', 'http_403', ['b', 'c', 'd', 'e']);
    add('deleted', 'http_204', ['x']);
    add('pending', '', ['y']);
    expect(groups.list()).toEqual([
      { outcome: 'failed', code: 'http_403', count: 4, samples: ['b', 'c', 'd'] },
      { outcome: 'failed', code: 'http_409', count: 1, samples: ['a'] },
      { outcome: 'unknown', code: 'timeout', count: 1, samples: ['u1'] },
    ]);
  });
});
