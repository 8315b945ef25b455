import { describe, expect, it } from 'vitest';
import { describeResults } from '../../../../src/commands/evidence/report-location.ts';
import { resultsFacts } from '../../../../src/ledger/results.ts';
import { parseRun } from '../../../../src/ledger/run.ts';

const runWith = (hash: Record<string, string>) => parseRun('r', hash);
const wanted = { resultsWanted: '1' };
const finalized = { state: 'completed', endedAt: '5', ...wanted };
const there = { resultsOf: 'completed 5', resultsIn: '/srv/r', resultsBy: 'host' };

describe('where the results of a run are', () => {
  it.each([
    ['nothing for a run that no worker delivers', { state: 'completed', endedAt: '5' }, '', null, null],
    ['while it goes on', { state: 'running', ...wanted }, 'not delivered yet: the run has not ended', null, /ended/],
    [
      'while nobody came',
      finalized,
      'not delivered yet: waiting for a worker with --results',
      null,
      /waiting for a worker/,
    ],
    ['after a failure', { ...finalized, resultsProblem: 'full\nup' }, /^not delivered yet: full.up$/, null, /full/],
    ['in a folder', { ...finalized, ...there }, '/srv/r on host', '/srv/r', null],
    ['at a URL', { ...finalized, ...there, resultsIn: 'https://a/r/' }, 'https://a/r/', 'https://a/r/', null],
    [
      'at an earlier halt only',
      { ...finalized, ...there, resultsOf: 'halted 3' },
      /^not delivered yet/,
      null,
      /waiting for a worker/,
    ],
  ])('%s', (_, hash, words, results, problem) => {
    const run = runWith(hash);
    expect(describeResults(run)).toEqual(typeof words === 'string' ? words : expect.stringMatching(words));
    const reason = problem === null ? null : expect.stringMatching(problem);
    expect(resultsFacts(run)).toEqual({ results, results_problem: reason });
  });
});
