import { describe, expect, it } from 'vitest';
import { safeText } from '../../../src/terminal/safe-output.ts';
import { clip, columns, commandLine, textWidth } from '../../../src/terminal/style.ts';

describe('shell word', () => {
  describe('the command line that is shown again', () => {
    it('is what was typed, as a shell takes it', () => {
      const typed = [
        'run',
        'old ids.csv',
        '--rate',
        '200/s',
        '--reason',
        "it's time",
        '--base-url',
        'https://a.example/x',
      ];
      expect(commandLine('expunge', typed)).toBe(
        "expunge run 'old ids.csv' --rate 200/s --reason 'it'\\''s time' --base-url https://a.example/x",
      );
    });

    it.each([
      [['--proxy', 'http://ana:geheim@proxy.example:3128'], "--proxy 'http://***@proxy.example:3128'"],
      [['--proxy=http://geheim@proxy.example:3128'], "'--proxy=http://***@proxy.example:3128'"],
      [['--proxy', 'http://ana:ge:he@im@p'], "--proxy 'http://***@p'"],
      [['--token-command', 'curl -H "X-Key: geheim" https://auth'], "--token-command '***'"],
      [['--token-command=echo geheim'], "'--token-command=***'"],
      [['--token-url', 'https://auth.example/token?key=geheim'], "--token-url 'https://auth.example/token?***'"],
      [['--base-url', 'https://ana:geheim@api.example'], "--base-url 'https://***@api.example'"],
    ])('has no secret of %j', (typed, shown) => {
      expect(commandLine('expunge', ['run', 'x.csv', ...typed])).toBe(`expunge run x.csv ${shown}`);
    });

    it('leaves all else as it was: files and addresses of mail, too', () => {
      const typed = ['run', 'list@home/old?.csv', '--reason', 'ana@example.com?'];
      expect(commandLine('expunge', typed)).toBe("expunge run 'list@home/old?.csv' --reason 'ana@example.com?'");
    });
  });
});

describe('a table on a terminal', () => {
  const header = ['RUN', 'STATE', 'ROWS', 'PENDING', 'TARGET', 'LIST'];
  const dropped = ['ROWS', 'TARGET', 'PENDING'];
  const rows = [
    header,
    [
      '20261120-1602-m4tz',
      'running (limit until 14:10)',
      '250,000',
      '154,988',
      'api.example.com',
      '出力データ一覧の写し.csv',
    ],
    ['20261120-1603-k7qd', 'completed', '12', '0', 'api.example.com', 'קובץ.csv'],
    [
      '20261120-1604-k7qe',
      'completed',
      '12',
      '0',
      'api.example.com',
      '👩‍👩‍👧👩‍👩‍👧👩‍👩‍👧👩‍👩‍👧👩‍👩‍👧👩‍👩‍👧👩‍👩‍👧👩‍👩‍👧.csv',
    ],
  ];

  it.each([60, 80, 120])('fits into %i columns, and has run and state', (width) => {
    const lines = columns(rows, { width, dropped }).split('\n');
    for (const line of lines) expect(textWidth(line)).toBeLessThanOrEqual(width);
    for (const [n, [run]] of rows.entries()) expect(lines[n]).toContain(run);
    expect(lines[1]).toContain('running');
  });

  it('has its cells one below the other, however wide their characters are', () => {
    const lines = columns([
      ['A', 'B'],
      ['日本', 'x'],
      ['abcd', 'x'],
      ['e\u0301', 'x'],
    ]).split('\n');
    expect(lines.map((line) => textWidth(line))).toEqual([7, 7, 7, 7]);
  });

  it('keeps text from the right to the left within its cell, and leaves a pipe as it is', () => {
    expect(safeText(columns(rows, { width: 120, dropped }))).toContain('\u2068קובץ.csv\u2069');
    expect(safeText(columns(rows))).not.toContain('\u2068');
    expect(columns(rows)).toContain('出力データ一覧の写し.csv');
  });
});

it('a line is cut between characters as people see them', () => {
  expect(clip('ab👩‍👩‍👧cd', 5)).toBe('ab👩‍👩‍👧…');
  expect(clip('ab👩‍👩‍👧cd', 4)).toBe('ab…');
  expect(clip('日本語', 5)).toBe('日本…');
  expect(clip('日本語', 6)).toBe('日本語');
});
