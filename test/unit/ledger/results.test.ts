import { describe, expect, test } from 'vitest';
import { awaitsResults, nameEnd, resultsFacts, resultsKeepMs } from '../../../src/ledger/results.ts';
import { parseRun } from '../../../src/ledger/run.ts';

const day = 86_400_000;
const runOf = (fields: Record<string, string>) => parseRun('20261120-1913-mxmm', fields);

describe('the results of a run', () => {
  test.for([
    [{ state: 'completed', endedAt: '7', changedAt: '8' }, 'completed 7'],
    [{ state: 'cancelled', endedAt: '7', changedAt: '8' }, 'cancelled 7'],
    [{ state: 'halted', endedAt: '', changedAt: '8' }, 'halted 8'],
    [{ state: 'paused', endedAt: '', changedAt: '8' }, ''],
    [{ state: 'running', endedAt: '', changedAt: '8' }, ''],
  ] as const)('are of one end of it: %j is "%s"', ([fields, name]) => {
    expect(nameEnd(runOf(fields))).toBe(name);
  });

  test.for([
    [{ state: 'completed', endedAt: '7', resultsWanted: '1' }, true],
    [{ state: 'completed', endedAt: '7', resultsWanted: '1', resultsOf: 'halted 5' }, true],
    [{ state: 'completed', endedAt: '7', resultsWanted: '1', resultsOf: 'completed 7' }, false],
    [{ state: 'completed', endedAt: '7' }, false],
    [{ state: 'running', resultsWanted: '1' }, false],
  ] as const)('are awaited until those of this end are there: %j is %j', ([fields, isAwaited]) => {
    const run = runOf({ ...fields, keepMs: '60000' });
    expect(awaitsResults(run)).toBe(isAwaited);
    expect(resultsKeepMs(run, 60_000)).toBe(isAwaited ? 30 * day : 60_000);
    expect(resultsKeepMs(run, 40 * day)).toBe(40 * day);
  });

  test.for([
    [{ state: 'completed', endedAt: '7' }, null, null],
    [{ state: 'running', resultsWanted: '1' }, null, 'the run has not ended'],
    [{ state: 'completed', endedAt: '7', resultsWanted: '1', resultsOf: 'completed 7', resultsIn: '/a' }, '/a', null],
    [{ state: 'completed', endedAt: '7', resultsWanted: '1' }, null, 'waiting for a worker with --results'],
    [{ state: 'completed', endedAt: '7', resultsWanted: '1', resultsProblem: 'no room' }, null, 'no room'],
  ] as const)('are told of in a summary: %j', ([fields, results, problem]) => {
    expect(resultsFacts(runOf(fields))).toEqual({ results, results_problem: problem });
  });
});
