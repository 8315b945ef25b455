import { describe, expect, it } from 'vitest';
import { parseStrictJson } from '../../src/strict-json.ts';

const values = ['{}', '[]', '"a"', '12', 'null', '{"a":{"a":[{"a":1},{"a":2}]},"b":"a"}', '{"a":"\\"a\\":1","b":" {"}'];

describe('JSON that a person writes', () => {
  it.each(values)('is read like any JSON: %s', (text) => {
    expect(parseStrictJson(text)).toEqual(JSON.parse(text));
  });

  it('may begin with a byte order mark, as some editors write it, and nothing else may', () => {
    expect(parseStrictJson('\uFEFF{"a":1}')).toEqual({ a: 1 });
    expect(() => parseStrictJson('\uFEFF\uFEFF{"a":1}')).toThrow('it is not JSON (line 1 column 1)');
  });

  it.each([
    ['{"limit":1,"limit":5000}', '"limit" twice in one object (line 1 column 12)'],
    ['{\n  "a": {\n    "b" : 1,\n    "b" : 1\n  }\n}', '"b" twice in one object (line 4 column 5)'],
    ['[1,[{"x":[],"y":"}","x":{}}]]', '"x" twice in one object (line 1 column 21)'],
    ['{"\\u0061":1,"a":2}', '"a" twice in one object (line 1 column 13)'],
    ['{"__proto__":1,"__proto__":2}', '"__proto__" twice in one object (line 1 column 16)'],
    ['{"":1,"":2}', '"" twice in one object (line 1 column 7)'],
    ['{"a\\nb":1,"a\\nb":2}', '"a\\nb" twice in one object (line 1 column 11)'],
    [`{"${'k'.repeat(90)}":1,"${'k'.repeat(90)}":1}`, `"${'k'.repeat(60)}" twice in one object`],
  ])('has each key once: %s', (text, words) => {
    expect(() => parseStrictJson(text)).toThrow(`it has ${words}`);
  });

  it('may be deep: nothing overflows', () => {
    const [deep, text] = [100_000, '{"a":'];
    expect(() => parseStrictJson(`${text.repeat(deep)}1${'}'.repeat(deep)}`)).not.toThrow();
    expect(() => parseStrictJson(`${text.repeat(deep)}{"b":1,"b":1}${'}'.repeat(deep)}`)).toThrow('it has "b" twice');
  });

  it.each([
    ['', 'it ends too early'],
    ['{"a":1', 'line 1 column 7'],
    ['{"a":', 'it ends too early'],
    ["{'a':1}", 'line 1 column 2'],
    ['{"a":1,}', 'line 1 column 8'],
    ['{\n "tokenFile": geheim.txt\n}', 'line 2 column 15'],
    ['{"a":1} // geheim', 'line 1 column 9'],
    ['eyJhbGciOiJIUzI1NiJ9.geheim', 'line 1 column 1'],
    ['"geheim', 'line 1 column 8'],
    ['[,"geheim"]', 'a comma or bracket is misplaced'],
  ])('that is none is refused with its place, and nothing of it is shown: %j', (text, where) => {
    expect(() => parseStrictJson(text)).toThrow(`it is not JSON (${where})`);
    expect(() => parseStrictJson(text)).not.toThrow(/geheim|eyJ|cause/);
  });
});
