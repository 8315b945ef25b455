import { describe, expect, it } from 'vitest';
import type { FoundRow, OpenId } from '../../../src/lookup/find-id.ts';
import { outcomes } from '../../../src/model/outcome.ts';
import { explainText, whyText } from '../../../src/terminal/explain-text.ts';

const now = Date.UTC(2026, 10, 20, 16);
const run = { id: 'r1', state: 'completed', doubt: '', retryOf: '' } as const;
const row: FoundRow = {
  file: 'old.csv',
  line: 18,
  resource: 'views',
  id: 'v-1',
  outcome: 'deleted',
  status: 204,
  attempts: 1,
  settledAt: '2026-11-20T15:49:00.000Z',
  code: 'http_204',
  excerpt: '',
  open: null,
};
const open: OpenId = { isInFlight: false, inDoubt: false, nextTryAt: null };
const because = (facts: Partial<FoundRow>, of: Partial<Parameters<typeof whyText>[0]> = {}) =>
  whyText({ ...run, ...of }, { ...row, ...facts }, now);

describe('why an id has its outcome', () => {
  it.each<[facts: Partial<FoundRow>, words: string]>([
    [{}, 'The API confirmed the delete with 204.'],
    [
      { outcome: 'absent', status: 404 },
      'answered 404 to the first request of this run that can have been executed. That does not show',
    ],
    [
      { outcome: 'absent', status: 409 },
      'answered 409, which --on-status of this run or the definition of the resource counts as absent.',
    ],
    [{ outcome: 'gone_unconfirmed', status: 404 }, 'A 404 after a request that may have been executed'],
    [{ outcome: 'failed', status: 403 }, 'The API refused it: the last answer was 403. It presumably still exists.'],
    [{ outcome: 'failed', status: null, code: 'none', attempts: 8 }, 'No request reached the API, in 8 attempts.'],
    [{ outcome: 'failed', status: 409, attempts: 8 }, 'the last answer was 409, after 8 attempts.'],
    [
      { outcome: 'failed', status: null, code: 'run_cancelled', attempts: 2 },
      'cancelled after 2 attempts, none of which can have been executed.',
    ],
    [
      { outcome: 'unknown', status: 503, attempts: 8 },
      'No definite answer: the last answer was 503, after 8 attempts.',
    ],
    [{ outcome: 'unknown', status: null, code: 'timeout' }, 'No definite answer: no answer in time.'],
    [
      { outcome: 'unknown', status: 403, attempts: 2 },
      'It was refused (the last answer was 403, after 2 attempts), but an earlier request may have been executed.',
    ],
    [{ outcome: 'unknown', status: null, code: 'run_cancelled' }, 'cancelled while a request for it may have been'],
    [{ outcome: 'not_attempted', status: null }, 'it was never sent'],
    [{ outcome: 'rejected', code: 'unsafe_character' }, 'no id that is safe to send (unsafe_character)'],
    [{ outcome: 'duplicate', excerpt: 'first at old.csv:2' }, 'listed earlier (first at old.csv:2) and was sent once'],
    [{ outcome: 'protected' }, '--protect listed the id'],
  ])('%o', (facts, words) => {
    expect(because(facts)).toContain(words);
  });

  it('is told for every outcome', () => {
    for (const outcome of outcomes) expect(because({ outcome })).toMatch(/^.{20,}\.$/);
  });

  it('names the doubt of a run where it plays a part', () => {
    const doubt = 'Redis was restarted';
    expect(because({ outcome: 'gone_unconfirmed', status: 404 }, { doubt })).toContain(
      'in doubt: Redis was restarted.',
    );
    expect(because({}, { doubt })).not.toContain('doubt');
  });
});

describe('what an id without an outcome waits for', () => {
  const pending = { outcome: 'pending', status: null, code: '', settledAt: '', attempts: 0 } as const;
  it.each<[state: 'running' | 'paused' | 'halted' | 'planned', attempts: number, open: OpenId, words: string]>([
    ['running', 0, open, 'It waits for its first attempt.'],
    ['running', 0, { ...open, isInFlight: true }, 'A request for it is in flight, or its process was killed.'],
    ['running', 3, { ...open, nextTryAt: now + 90_000 }, 'It waits after 3 attempts: next try at '],
    ['running', 1, { ...open, inDoubt: true }, 'after 1 attempt. In doubt: an earlier request may have been executed'],
    [
      'paused',
      0,
      { ...open, nextTryAt: now + 90_000 },
      'while the run is paused, until the command resume continues it. It waits for its first attempt.',
    ],
    ['halted', 2, { ...open, nextTryAt: now }, 'until the command resume continues it. It waits after 2 attempts.'],
    ['planned', 0, open, 'The run has not started: nothing was sent.'],
  ])('%s after %i attempts, %o', (state, attempts, of, words) => {
    expect(because({ ...pending, attempts, open: of }, { state })).toContain(words);
  });
});

describe('an id in a run', () => {
  it('is shown with run, place, outcome, reason and answer, and where else it stood', () => {
    const refused = {
      ...row,
      outcome: 'failed',
      status: 403,
      code: 'http_403',
      excerpt: '\u001b[31mnot\nyours',
    } as const;
    const copy = { ...row, outcome: 'duplicate', line: 40 } as const;
    const rows = [refused, ...Array.from({ length: 7 }, (_, i) => ({ ...copy, line: 40 + i }))];
    expect(explainText(run, { rows, more: 3 }, now).split('\n')).toEqual([
      'Run r1 · completed · old.csv:18',
      '  failed · http_403 · 1 attempt · 2026-11-20 15:49:00 UTC',
      '  The API refused it: the last answer was 403. It presumably still exists.',
      '  It answered: \\u001b[31mnot yours',
      `  Also at ${[40, 41, 42, 43, 44].map((line) => `old.csv:${line} duplicate`).join(', ')}, 5 other lines`,
    ]);
  });

  it('is broken between words on a terminal, and says what it retries and what came instead of an answer', () => {
    const lost = { ...row, outcome: 'unknown', status: null, code: 'reset', attempts: 8, excerpt: 'connection reset' };
    const found = { rows: [lost as FoundRow], more: 0 };
    const lines = explainText({ ...run, retryOf: 'r0' }, found, now, { columns: 80 }).split('\n');
    expect(lines).toEqual([
      'Run r1 · completed · old.csv:18',
      '  unknown · reset · 8 attempts · 2026-11-20 15:49:00 UTC',
      '  No definite answer: the connection broke before an answer, after 8 attempts. A',
      '  request may have been executed.',
      '  The last error: connection reset',
      '  Retry of run r0',
    ]);
  });
});
