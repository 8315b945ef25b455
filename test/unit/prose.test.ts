import { readdirSync } from 'node:fs';
import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { readPage } from '../support/docs.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));

/** Lines of prose by kind, each with the file it is in. */
type Line = { path: string; text: string };

const paths = readdirSync(`${root}src`, { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile())
  .map((entry) => relative(root, `${entry.parentPath}/${entry.name}`).replaceAll('\\', '/'));
const pages = ['README.md', 'CHANGELOG.md', '.github/CONTRIBUTING.md', '.github/SECURITY.md'].concat(
  paths.filter((path) => path.endsWith('.md')),
);
const sourceLines = paths.filter((path) => /\.(ts|js)$/.test(path)).flatMap(linesOf);

const isComment = ({ text }: Line) => /\/\*\*|^ *\*|(^|[ ;])\/\/ /.test(text);

const prose = {
  pages: pages.flatMap(linesOf),
  comments: sourceLines.filter(isComment),
  messages: sourceLines.filter((line) => !isComment(line) && !line.text.startsWith('import')).flatMap(literalsOf),
};

function linesOf(path: string): Line[] {
  return readPage(path)
    .split('\n')
    .map((text) => ({ path, text }));
}

/** Literals of at least three words. */
function literalsOf({ path, text }: Line): Line[] {
  return (text.match(/'[^']* [^']* [^']*'|`[^`]* [^`]* [^`]*`/g) ?? []).map((literal) => ({ path, text: literal }));
}

/**
 * Phrases that are correct, and that a native reader would not write. `max`: how often each is left on pages, in comments and in messages, mostly as
 * good English. Lower a number when you rewrite one; never raise it.
 */
const phrases: { not: RegExp; write: string; max: [pages: number, comments: number, messages: number] }[] = [
  { not: /\b(go|goes|going|went|gone) on\b/, write: 'continue, resume, persist', max: [3, 0, 0] },
  { not: /, too\b/, write: 'also, before the verb', max: [2, 0, 1] },
  { not: /\b[Ee]lse (?!if\b|\{|return|throw|that |is |bound)/, write: 'otherwise', max: [7, 11, 9] },
  {
    not: /\b(is|are|was|were) (no|none)\b(?! longer| more| earlier)/,
    write: 'is not a, does not count as',
    max: [14, 90, 20],
  },
  { not: /\b([Tt]hose|[Tt]hat) of\b/, write: 'the noun again, or a possessive', max: [0, 18, 0] },
  {
    not: /\b[Oo]ne that\b|\bones? of (it|them|those)\b|(^|[.:;] |\*\* )One (of|with|who|which|is|gets|in)\b/,
    write: 'the noun',
    max: [11, 13, 7],
  },
  {
    not: /\b[Ww]hat (became|becomes|is|was|are|were|has|it|they|each|one|goes|came|comes|happens|happened)\b/,
    write: 'outcome, result, remainder, contents, reason',
    max: [62, 80, 29],
  },
  { not: /\bso (many|long|few|much|often)\b/, write: 'this many, up to N', max: [0, 1, 0] },
  {
    not: /(^|[.;:(*] )Where\b(?! do| to)|, where\b|[a-z] where (it|the|a|an|they|that|there|Redis|no|nothing|all|one)\b/,
    write: 'if, when',
    max: [13, 16, 17],
  },
  {
    not: /(^|[.:;(,] |\*\* )[Oo]f (a|an|the|several|some|ids|all|these|those|it|many|two|both)\b/,
    write: 'for, in',
    max: [2, 11, 1],
  },
  { not: /\bstands?\b(?! for| still)/, write: 'is in, contains, precedes', max: [0, 0, 0] },
  {
    not: /\b(beside|anew|all the same|meanwhile|as ever|of late|now and then|once more|ever more)\b/,
    write: 'with, again, anyway, in the meantime, recently',
    max: [1, 0, 1],
  },
  {
    not: /\b(requests?|objects?|ids?|rows?|lines?|outcome|job|bytes|rate|permits|change|number|slot|all) (a|an) (second|id|line|row|day|request|slot|minute|bucket|commit)\b/,
    write: 'per',
    max: [1, 0, 0],
  },
  { not: /\b(told|tells?)\b/, write: 'sent, reported, shown', max: [6, 3, 1] },
  {
    not: /\b(is|are|was|were) (taken for|waited for|believed|looked (for|at|into)|thought|asked|put back|counted|noticed)\b/,
    write: 'who does it',
    max: [9, 43, 1],
  },
  { not: /\b(somebody|nobody|everybody)\b/, write: 'anyone, no one, another process', max: [3, 1, 0] },
  {
    not: /\b([Nn]o|[Nn]othing|[Nn]one) [a-z ]{0,30}\b(may|might)\b|\bmay not\b/,
    write: 'cannot, is not allowed to',
    max: [0, 3, 5],
  },
];

/** Docstrings are read alone, so they start with a noun (fields), a verb (functions) or *Whether* (booleans). */
const startsInTheMiddle =
  /\/\*\* (Of|By|For|In|With|As|From|Seen|Accepted|Left|Null|True|False|Until|A second|Not|Behind|Up to|Since|Where|Beside|Those|That|Its|Without) /;

describe('the prose', () => {
  it.each(phrases)('says "$write", not $not', ({ not, max }) => {
    const found = Object.values(prose).map((lines) => lines.filter(({ text }) => not.test(text)));
    const all = found.map((lines, kind) => (lines.length > max[kind]! ? lines : []));
    expect(all.flat().map(({ path, text }) => `${path}: ${text.trim()}`)).toEqual([]);
  });

  it('begins docstrings with what they are about', () => {
    const found = prose.comments.filter(({ text }) => startsInTheMiddle.test(text));
    const left = 18; // lower it, never raise it
    expect(found.length > left ? found.map(({ path, text }) => `${path}: ${text.trim()}`) : []).toEqual([]);
  });

  it('is there to be read', () => {
    for (const lines of Object.values(prose)) expect(lines.length).toBeGreaterThan(1_000);
  });
});
