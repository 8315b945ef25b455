import { describe, expect, it } from 'vitest';
import { toTypeAnywhere } from '../../../src/model/to-type.ts';
import { type Ending, endingText } from '../../../src/terminal/ending.ts';
import { plainStyle } from '../../../src/terminal/style.ts';
import { noCounts } from './snapshots.ts';

const ending: Ending = {
  toType: toTypeAnywhere,
  kind: 'completed',
  runId: 'r1',
  reason: '',
  who: '',
  halt: '',
  retryOf: '',
  rehearsalOf: '',
  isPlanned: false,
  brakes: [],
  rows: 1_010,
  ids: 1_003,
  isNoneThere: false,
  pending: 0,
  counts: { ...noCounts, deleted: 968, gone_unconfirmed: 2, failed: 33, rejected: 7 },
  protectedRead: null,
  doubt: '',
  attempts: 1_100,
  bodies: 0,
  definitions: '',
  proof: [],
  activeMs: 10_000,
  pace: [],
  failures: [{ outcome: 'failed', code: 'http_403', count: 33, samples: ['a-1', 'a-2', 'a-3', 'a-4'] }],
  examples: [],
  behindHalt: '',
  files: ['report.csv'],
  command: 'expunge run ids.csv --resource views',
  ignoredProxy: null,
};

describe('endingText', () => {
  it('says what happened, why, where it is written and what to do next', () => {
    expect(endingText(ending).split('\n')).toEqual([
      'Run r1 completed: 1,003 ids in 10 s (100/s).',
      '  deleted           968  the API confirmed it',
      '  gone_unconfirmed    2  gone, but not confirmed to us',
      '  failed             33  rejected by the API; presumably still exists',
      '  rejected            7  not usable as an id; never sent',
      '    33  http_403   a-1  a-2  a-3 …',
      '  Report: report.csv',
      '  Retry the others: expunge retry r1',
    ]);
  });

  it('says how many answers had a body that HTTP does not allow, and nothing where none had', () => {
    const [one, many] = [1, 1_203].map((bodies) => endingText({ ...ending, bodies }).split('\n')[5]);
    expect(one).toBe('  1 answer was 204 with a body, which HTTP does not allow: is it the API that answers?');
    expect(many).toBe('  1,203 answers were 204 with a body, which HTTP does not allow: is it the API that answers?');
    expect(endingText(ending)).not.toContain('body');
  });

  it('names the variable of a proxy that is not used, where the API was out of reach', () => {
    const stepsOf = (halt: Ending['halt']) =>
      endingText({ ...ending, kind: 'halted', halt, ignoredProxy: 'HTTPS_PROXY' }).split('\n');
    const use = '  Use the proxy of HTTPS_PROXY: expunge run ids.csv --resource views --proxy "$HTTPS_PROXY"';
    for (const halt of ['target_unreachable', 'target_configuration'] as const) expect(stepsOf(halt)).toContain(use);
    expect(stepsOf('forbidden')).not.toContain(use);
    expect(endingText({ ...ending, kind: 'halted', halt: 'target_unreachable' })).not.toContain('PROXY');
  });

  it('names the run whose ids it retried', () => {
    expect(endingText({ ...ending, retryOf: 'r0' }).split('\n')).toContain('  Retry of run r0');
  });

  it('leaves out what to do next where somebody wants the result only', () => {
    expect(endingText(ending, plainStyle, true)).toBe(endingText(ending).split('\n').slice(0, -1).join('\n'));
  });

  it('says how many protected ids were read, also where none matched', () => {
    const lines = endingText({ ...ending, protectedRead: 12 }).split('\n');
    expect(lines).toContain('  protected           0  never sent, as --protect asks: 12 ids read');
    const matched = { ...ending, protectedRead: 1, counts: { ...ending.counts, protected: 3 } };
    expect(endingText(matched)).toContain('  protected           3  never sent, as --protect asks: 1 id read\n');
  });

  it('says how fast it was, where somebody measured it', () => {
    expect(endingText({ ...ending, pace: ['Pace: 398/s of 412/s allowed'] }).split('\n')).toContain(
      '  Pace: 398/s of 412/s allowed',
    );
    expect(endingText(ending)).not.toContain('Pace');
  });

  it('suggests nothing after a run in which nothing is left to do', () => {
    const text = endingText({ ...ending, counts: noCounts, failures: [] });
    expect(text).not.toContain('expunge retry');
  });

  it('says that an interrupted run goes on with the same command', () => {
    const lines = endingText({ ...ending, kind: 'interrupted', reason: 'Ctrl-C', pending: 100 }).split('\n');
    expect(lines[0]).toBe('Run r1 stopped: Ctrl-C. 903 of 1,003 ids are settled, 100 left. Nothing is lost.');
    expect(lines).toContain('  pending           100  without an outcome yet');
    expect(lines.at(-1)).toBe('  Resume with the same command: expunge run ids.csv --resource views');
  });

  it('says that the same command waits where somebody else had paused the run', () => {
    const lines = endingText({ ...ending, kind: 'paused', who: 'ana@laptop', reason: 'lunch', pending: 100 }).split(
      '\n',
    );
    expect(lines[0]).toMatch('Run r1 stays paused by ana@laptop: lunch. 903 of 1,003 ids are settled, 100 left.');
    expect(lines.at(-1)).toBe('  The run stays paused until it is resumed: expunge resume r1');
  });

  it('does not say that a run goes on which is being cancelled', () => {
    const text = endingText({ ...ending, kind: 'cancelling', who: 'ana@laptop', pending: 100 });
    expect(text).toContain('Left run r1, which is being cancelled by ana@laptop.');
    expect(text).toContain('Wait until it is cancelled: expunge cancel r1 --yes');
    expect(text).not.toContain('Continue');
  });

  it('says why a run halted and where to look', () => {
    const text = endingText({ ...ending, kind: 'halted', halt: 'credentials', reason: 'the API answered 401.' });
    expect(text).toContain('Run r1 halted: the API answered 401. ');
    expect(text).toContain('Find the cause: expunge check');
  });

  it('shows some of the ids that halted a run, and how to go on where they were expected', () => {
    const halted: Ending = {
      ...ending,
      kind: 'halted',
      halt: 'all_absent',
      examples: [
        { id: 'a-1', outcome: 'absent', code: 'http_404', excerpt: '' },
        { id: 'a\n2', outcome: 'absent', code: 'http_404', excerpt: 'no such\nview' },
      ],
      behindHalt: 'absent',
    };
    const lines = endingText(halted).split('\n');
    expect(lines.slice(lines.indexOf('  For example:')).slice(1, 3)).toEqual([
      '    a-1: absent, http_404',
      '    a\\n2: absent, http_404 "no such view"',
    ]);
    expect(lines).toContain('  See all of them: expunge report r1 --only absent');
    expect(lines).toContain('  If they are expected to be gone: expunge run ids.csv --resource views --expect-absent');
  });

  it.each([
    ['', ''],
    ['{"dashboards":{}}', ' --resource dashboards'],
    ['{"dashboards":{},"reports":{}}', ''],
  ])('shows the meanings of answers for the one configured resource of a run: %s', (definitions, more) => {
    const text = endingText({ ...ending, kind: 'halted', halt: 'unexpected_answers', definitions });
    expect(text.split('\n')).toContain(`  See what each answer means: expunge check --verdicts${more}`);
  });

  it('does not propose the --max-deletes again that was reached', () => {
    const command = 'expunge run ids.csv --max-deletes 100 --partial';
    const text = endingText({ ...ending, kind: 'halted', halt: 'max_deletes', command });
    expect(text).toContain('Continue with a higher --max-deletes: expunge run ids.csv --max-deletes … --partial');
  });

  it('says loudly that none of the ids was there, and what to do where that was expected', () => {
    const lines = endingText({ ...ending, counts: { ...noCounts, absent: 1_003 }, isNoneThere: true }).split('\n');
    expect(lines).toContainEqual(
      expect.stringContaining('Nothing shows that any of the 1,003 ids was there. Check --base-url'),
    );
    expect(lines.at(-1)).toBe(
      '  If they are expected to be gone: expunge run ids.csv --resource views --expect-absent',
    );
  });

  it.each<[Partial<Ending>, string]>([
    [{ isNoneThere: true }, 'gone: expunge plan FILE --expect-absent'],
    [{ kind: 'halted', halt: 'all_absent' }, 'gone: expunge resume r1 --expect-absent'],
    [{ kind: 'halted', halt: 'max_deletes' }, 'a higher --max-deletes: expunge resume r1 --max-deletes N'],
  ])('gives the command of a plan no rule to set: %j', (more, words) => {
    const text = endingText({ ...ending, ...more, isPlanned: true, command: 'expunge apply p1' });
    expect(text).toContain(words);
    expect(text).not.toContain('expunge apply p1 --');
  });

  it('says who cancelled a run', () => {
    expect(endingText({ ...ending, kind: 'cancelled', who: 'ana', reason: 'wrong list' })).toContain(
      'Run r1 cancelled by ana: wrong list.',
    );
  });

  it('says how to follow and stop a detached run', () => {
    expect(endingText({ ...ending, kind: 'detached' })).toContain('expunge status r1 --watch');
  });

  it('tells of a run that is left to workers half-way only what is left', () => {
    const left = endingText({ ...ending, kind: 'detached', ids: 100, pending: 79 });
    expect(left).toContain('is left to the workers: 79 ids.');
  });

  it('puts ids with white space around them in quotes', () => {
    const failures = [{ outcome: 'rejected' as const, code: 'outer_white_space', count: 2, samples: [' a-1', 'a-2'] }];
    expect(endingText({ ...ending, failures })).toContain('    2  outer_white_space   " a-1"  a-2\n');
  });

  it('shows ten reasons and counts the others', () => {
    const failures = Array.from({ length: 12 }, (_, i) => ({
      outcome: 'failed' as const,
      code: `http_4${i}`,
      count: 1,
      samples: ['a'],
    }));
    expect(endingText({ ...ending, failures })).toContain('and 2 other reasons, all in the report');
  });
});
