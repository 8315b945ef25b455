import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../', import.meta.url));

/** A statement that always holds, with the tests that fail if it does not. */
type Invariant = { sentence: string; tests: { file: string; title: string }[] };

/**
 * The invariants of the tests, unit tests first. A test has a comment `@invariant name: sentence`, and further tests of the same invariant have
 * `@invariant name`. Throws for a name without a sentence, or with two, and for a comment that no test follows.
 */
export function readInvariants(): Invariant[] {
  const files = readdirSync(root, { recursive: true, encoding: 'utf8' }).map((path) => path.replaceAll('\\', '/'));
  const tags = files
    .filter((path) => path.endsWith('.test.ts'))
    .sort((a, b) => kindOf(a) - kindOf(b) || (a < b ? -1 : 1))
    .flatMap((path) => tagsOf(`test/${path}`, readFileSync(root + path, 'utf8')));
  return invariantsOf(tags);
}

const kinds = ['unit', 'integration', 'e2e', 'services', 'browser', 'chaos', 'prove'];

function kindOf(path: string): number {
  return kinds.indexOf(path.split('/')[0]!);
}

type Tag = { name: string; sentence: string; file: string; title: string };

/** The tags of one file, in its order. Pure. */
export function tagsOf(file: string, text: string): Tag[] {
  return [...text.matchAll(/^[ \t]*\/\*\*\s+(?:\* )?@invariant ([\s\S]*?)\*\//gm)].map((found) => {
    const [, name = '', sentence = ''] =
      /^([\w-]+)(?::\s(.*))?$/.exec(found[1]!.replaceAll(/\s+(\* )?/g, ' ').trim()) ?? [];
    const behind = text.slice(found.index + found[0].length);
    const [, title] = /^\s*(?:it|test|describe)\b(?:(?!\n\n).)*?\(\s*'((?:[^'\\]|\\.)*)',/s.exec(behind) ?? [];
    if (name === '' || title === undefined) throw new Error(`${file}: ${found[0]} names no invariant of a test`);
    return { name, sentence, file, title };
  });
}

/** Puts the tests of each name together. Pure. */
export function invariantsOf(tags: readonly Tag[]): Invariant[] {
  const names = [...new Set(tags.map(({ name }) => name))];
  return names.map((name) => {
    const tests = tags.filter((tag) => tag.name === name);
    const [sentence, ...others] = tests.map((tag) => tag.sentence).filter((text) => text !== '');
    if (sentence === undefined || others.length > 0) throw new Error(`@invariant ${name} needs one sentence`);
    return { sentence, tests: tests.map(({ file, title }) => ({ file, title })) };
  });
}
