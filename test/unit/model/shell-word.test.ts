import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { quoteForShell, quotePath } from '../../../src/model/shell-word.ts';

test.each(['a', '', 'a b', "it's", '"$HOME"', '`id`', 'a\\b', '*.csv', '~', 'a;b', '#a', 'ä', 'a\nb', '!!'])(
  'a shell reads %j as it was',
  (text) => {
    const script = `printf %s ${quoteForShell(text)}`;
    expect(execFileSync('sh', ['-c', script], { encoding: 'utf8' })).toBe(text);
  },
);

test.each(['a\u202eb', "it's\u001b[2J", 'a\\\u200b', '\ufeff\n\t'])(
  'what cannot be seen in %j stands as codes, which bash reads',
  (text) => {
    expect(quoteForShell(text)).toMatch(/^[ -~]+$/);
    const env = { ...process.env, LC_ALL: 'C.UTF-8' };
    expect(execFileSync('bash', ['-c', `printf %s ${quoteForShell(text)}`], { encoding: 'utf8', env })).toBe(text);
  },
);

test.each([
  ['old.csv', 'old.csv'],
  ['https://api.example.com/v2', 'https://api.example.com/v2'],
  ['annotation id', "'annotation id'"],
])('%s is written %s', (text, written) => {
  expect(quoteForShell(text)).toBe(written);
});

test('the name of a file is never taken for an option', () => {
  expect([quotePath('-rf'), quotePath('-a b'), quotePath('a-b')]).toEqual(['./-rf', "'./-a b'", 'a-b']);
});
