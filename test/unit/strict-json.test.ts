import { describe, expect, it } from 'vitest';
import { lineOfKey, parseStrictJson } from '../../src/strict-json.ts';

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

describe('the line of a key', () => {
  const text = [
    '{', // 1
    '  "column": "resources",', // 2
    '  "sources": {"dashboards": {"command": ["path", "{\\"path\\": 1}"]}},', // 3
    '  "resources": {', // 4
    '    "charts": {"path": "/v1/charts/{id}", "headers": {"success": "path"}},', // 5
    '    "dashboards": {', // 6
    '      "success": [200],', // 7
    '      "headers": {"path": "x"},', // 8
    '      "\\u0070ath" : "/v1/{id}"', // 9
    '    },', // 10
    '    "views2": {"absent": [404], "path": "/v2/views2/{id}"}', // 11
    '  },', // 12
    '  "rate": "5/s"', // 13
    '}',
  ].join('\n');
  const cases: [keys: string[], line: number][] = [
    [['resources'], 4],
    [['resources', 'charts'], 5],
    [['resources', 'dashboards'], 6],
    [['resources', 'dashboards', 'path'], 9],
    [['resources', 'dashboards', 'headers', 'path'], 8],
    [['resources', 'views2', 'path'], 11],
    [['rate'], 13],
    [[], 1],
  ];

  it.each(cases)('is counted for %j', (keys, line) => {
    expect(lineOfKey(text, keys)).toBe(line);
  });

  it.each(cases)('is the same with the line ends of Windows and a byte order mark: %j', (keys, line) => {
    expect(lineOfKey(`\uFEFF${text.replaceAll('\n', '\r\n')}`, keys)).toBe(line);
  });

  it.each(cases)('is 1 for %j if the text has one line', (keys) => {
    expect(lineOfKey(JSON.stringify(JSON.parse(text)), keys)).toBe(1);
  });

  it.each<[keys: string[], line: number]>([
    [['resources', 'dashboards', 'absent'], 6],
    [['resources', 'charts', 'absent'], 5],
    [['resources', 'views2', 'success'], 11],
    [['resources', 'dashboards', 'success', 'path'], 7],
    [['resources', 'none', 'path'], 4],
    [['sources', 'dashboards', 'path'], 3],
    [['none'], 1],
  ])('is that of the last name found, never of the same name elsewhere: %j', (keys, line) => {
    expect(lineOfKey(text, keys)).toBe(line);
  });
});
