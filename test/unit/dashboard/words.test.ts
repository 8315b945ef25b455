import { describe, expect, it } from 'vitest';
import * as page from '../../../src/dashboard/words.ts';

type Summary = Parameters<typeof page.stateTone>[0];

describe('the mark of a run on the pages', () => {
  // By the exit code: the counts of a run that found none of its ids are those of one that expected that.
  it.each([
    ['completed', 0, 'good', '✔'],
    ['completed', 3, 'bad', '⚠'],
    ['completed', 1, 'bad', '⚠'],
    ['cancelled', 3, 'bad', '✖'],
    ['cancelled', 0, '', '✖'],
    ['halted', 4, 'bad', '■'],
    ['running', null, 'good', '▶'],
    ['paused', null, 'warn', '‖'],
  ])('that is %s with exit code %s is "%s" and %s', (state, exit, tone, symbol) => {
    const run = { state, exit, absent: 3 } as unknown as Summary;
    expect([page.stateTone(run), page.stateSymbol(run)]).toEqual([tone, symbol]);
  });
});

describe('the ids of a plan', () => {
  it.each([
    [{ rows: 9, annotations: 3, views: 1, rejected: 5, duplicate: 0 }, '3 annotations and 1 view'],
    [{ rows: 2, annotations: 0, views: 0, dashboards: 1, jobs: 1, duplicate: 7 }, '1 dashboard and 1 job'],
    [{ rows: 0, annotations: 0, views: 0 }, ''],
  ])('%o are named by the plan, whatever resources this server knows', (counts, words) => {
    const outcomes = ['rejected', 'duplicate'].map((outcome) => ({ outcome }));
    page.setMe({ ...page.me, outcomes: outcomes as unknown as typeof page.me.outcomes, resources: ['annotations'] });
    expect(page.idsInWords(counts)).toBe(words);
  });
});
