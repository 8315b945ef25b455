import { stripVTControlCharacters } from 'node:util';
import { describe, expect, it } from 'vitest';
import { readTopic, topicNames } from '../../../src/help/topics.ts';
import { foldCommand, hanging, readingWidth, renderMarkdown } from '../../../src/terminal/render-markdown.ts';
import { plainStyle, textWidth } from '../../../src/terminal/style.ts';

const bold = { ...plainStyle, bold: (text: string) => `\u001b[1m${text}\u001b[22m` };
const plain = (markdown: string, width = 60) => renderMarkdown(markdown, width, plainStyle);

describe('renderMarkdown', () => {
  it('breaks paragraphs at the width, and joins their lines', () => {
    expect(plain('one two\nthree four\n\nfive', 9)).toBe('one two\nthree\nfour\n\nfive\n');
  });

  it('shows headings, the second level in capitals', () => {
    expect(plain('# Rates: how\n## What you set\n### `--rate`')).toBe('Rates: how\n\nWHAT YOU SET\n\n--rate\n');
  });

  it('hangs the lines of an item behind its dash or number', () => {
    expect(plain('- one two three\n  four\n- five\n\n1. six', 12)).toBe(
      '  - one two\n    three\n    four\n  - five\n\n  1. six\n',
    );
  });

  it('leaves code as it is, however long', () => {
    const line = `expunge ${'x'.repeat(80)}  # | not a table`;
    expect(plain(`Try:\n\n\`\`\`sh\n${line}\n\n- no item\n\`\`\``)).toBe(`Try:\n\n    ${line}\n\n    - no item\n`);
  });

  it('folds a long command at its options, as a shell takes it; one that is followed by a comment is left', () => {
    const command = 'expunge run old.csv --resource annotations --column annotation_id --dry-run';
    expect(plain(`\`\`\`sh\n${command}\n\`\`\``)).toBe(
      '    expunge run old.csv --resource annotations \\\n        --column annotation_id --dry-run\n',
    );
    expect(plain(`\`\`\`sh\n${command} # a trial\n\`\`\``)).toBe(`    ${command} # a trial\n`);
    expect(plain(`\`\`\`sh\n${command}\n\`\`\``, 100)).toBe(`    ${command}\n`);
  });

  it('folds a command behind a pipe or another program, but no output', () => {
    const piped = "seq -f 'v-%06g' 1 100 | expunge run - --resource views";
    const folded = "seq -f 'v-%06g' 1 100 | expunge run - \\\n        --resource views\n";
    expect(plain(`\`\`\`sh\n${piped}\n\`\`\``, 52)).toBe(`    ${folded}`);
    expect(plain(`\`\`\`console\n$ ${piped}\n${piped}\n\`\`\``, 52)).toBe(`    $ ${folded}    ${piped}\n`);
  });

  it('leaves out comments, which mark generated parts', () => {
    expect(plain('<!-- x -->\n| a | b |\n|---|---|\n| 1 | 2 |\n<!-- /x -->\n')).toBe('a  b\n-  -\n1  2\n');
  });

  it('shows a table in columns, of which the longest is wrapped', () => {
    const text = `| exit | meaning |\n|---|---|\n| \`0\` | ${'word '.repeat(12)}|\n| 1 | a\\|b |`;
    expect(plain(text, 40)).toBe(
      [
        'exit  meaning',
        `----  ${'-'.repeat(34)}`,
        '0     word word word word word word word',
        '      word word word word word',
        '1     a|b\n',
      ].join('\n'),
    );
  });

  it('shows a table as a list where a column would be too narrow: of several columns each with its name', () => {
    const flag = '--unreachable-after <period>';
    const text = `| flag | default | meaning |\n|---|---|---|\n| \`${flag}\` |  | holds a refresh token, used instead |\n`;
    expect(plain(text, 40)).toBe(`${flag}\n    meaning: holds a refresh token, used\n    instead\n`);
    expect(plain('| flag | meaning |\n|---|---|\n| `--unreachable-timeout` | the user name |', 20)).toBe(
      '--unreachable-timeout\n    the user name\n',
    );
  });

  it('says what to type for a link to a topic', () => {
    expect(
      plain('See [rates](rates.md), [halts](outcomes.md#halts), [it](https://x.example), [`run`](control.md).', 100),
    ).toBe('See expunge help rates, halts (expunge help outcomes), it, "run" (expunge help control).\n');
  });

  it('puts code into quotes that would be lost in prose: signs, and a word where nothing is bold', () => {
    const text = '`.` and `/s` and `run` and `--rate 5/s` and *in doubt* and `*` **now**';
    expect(plain(text, 100)).toBe('"." and /s and "run" and --rate 5/s and in doubt and "*" now\n');
    expect(plain('`failed`, `not_attempted`, `http_409` or `stop-all`')).toBe(
      '"failed", "not_attempted", "http_409" or "stop-all"\n',
    );
    expect(stripVTControlCharacters(renderMarkdown(text, 100, bold))).toBe(
      '"." and /s and run and --rate 5/s and in doubt and "*" now\n',
    );
  });

  it('styles words one by one, so that no line ends within a style, and counts only what is seen', () => {
    const text = renderMarkdown('`one two` three', 8, bold);
    expect(text).toBe('\u001b[1mone\u001b[22m \u001b[1mtwo\u001b[22m\nthree\n');
  });
});

const family = '👩‍👩‍👧';
const scripts = [
  ['Chinese', '日本語'],
  ['a joined emoji', family],
  ['a flag', '🇸🇪'],
  ['combining marks', 'e\u0301e\u0301e\u0301'],
  ['styled words', '\u001b[1m日本\u001b[22m'],
] as const;

describe.each(scripts)('text with %s', (_, word) => {
  const words = Array(40).fill(word);

  it('fills lines of 60 columns, and no line is wider', () => {
    const lines = plain(words.join(' '), 60).trimEnd().split('\n');
    for (const line of lines) expect(textWidth(line)).toBeLessThanOrEqual(60);
    for (const line of lines.slice(0, -1)) expect(textWidth(`${line} ${word}`)).toBeGreaterThan(60);
    expect(lines.join(' ')).toBe(words.join(' '));
  });

  it('leaves the cells of a table one below the other', () => {
    const lines = plain(`| a | b |\n|---|---|\n| ${word} | x |\n| abcdefgh | x |`).trimEnd().split('\n');
    expect(lines.slice(2).map((line) => textWidth(line.slice(0, line.indexOf('x'))))).toEqual([10, 10]);
  });

  it('indents further lines to the column where the first begins', () => {
    const [first, second] = hanging('one two', `${word} `, textWidth(word) + 4).split('\n');
    expect([first, second]).toEqual([`${word} one`, `${' '.repeat(textWidth(word) + 1)}two`]);
  });

  it('is folded in a command where the line would be wider', () => {
    const command = `expunge run ${word} --resource views`;
    const width = textWidth(command);
    expect(foldCommand(command, width, 0)).toBe(command);
    expect(foldCommand(command, width - 1, 0)).toContain(' \\\n');
  });
});

it('an id is wrapped without a change to its characters', () => {
  const id = 'cafe\u0301'; // two characters; a library that composes them would print another id
  expect(plain(`one ${id} two`, 8)).toBe(`one ${id}\ntwo\n`);
});

describe('readingWidth', () => {
  it.each([
    ['a narrow terminal', 20, '', 60],
    ['a terminal', 72, '90', 72],
    ['a wide terminal', 300, '', 100],
    ['a pipe', undefined, '', 80],
    ['a pipe with COLUMNS', undefined, '90', 90],
    ['a pipe with another COLUMNS', undefined, 'wide', 80],
  ])('of %s (%s, %j) is %i', (_, columns, COLUMNS, width) => {
    expect(readingWidth(columns === undefined ? {} : { columns }, { COLUMNS })).toBe(width);
  });
});

describe.each(topicNames)('the topic %s', (name) => {
  it.each([60, 80, 100])('fits in %i columns, but for code and words that are longer', (width) => {
    const lines = plain(readTopic(name), width).split('\n');
    const wide = lines.filter((line) => [...line].length > width && !line.startsWith('    ') && /\S\s/.test(line));
    expect(wide).toEqual([]);
  });

  it('leaves no Markdown behind, and as plain text nothing that a terminal obeys', () => {
    const text = plain(readTopic(name), 80);
    const prose = text.split('\n').filter((line) => !line.startsWith('    '));
    expect(prose.filter((line) => /\*\*|\]\(|^#|^\||<!--/.test(line))).toEqual([]);
    expect(text).toBe(stripVTControlCharacters(text));
  });
});
