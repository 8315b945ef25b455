import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { ShapeCounter } from '../../../src/input/count-shapes.ts';
import { adviceOnOdd, explainOdd, judgeShapes, type ShapeProfile, shapeText } from '../../../src/input/id-shapes.ts';

/** The profile of these ids of one resource, one per line from line 1. */
function profileOf(ids: readonly string[]): ShapeProfile {
  const counter = new ShapeCounter();
  for (const [row, id] of ids.entries()) {
    const block = Buffer.from(`12345678${id}`);
    block.writeUInt32LE(0, 0);
    block.writeUInt32LE(row + 1, 4);
    counter.add({ row, resource: 1 }, block, 0, 8, block.length);
  }
  const counted = counter.shapes.reduce((sum, { count }) => sum + count, 0);
  return judgeShapes(counter.shapes, ids.length - counted, ['ids.csv']);
}

const many = (n: number, make: (i: number) => string) => Array.from({ length: n }, (_, i) => make(i));
const hash = (i: number) => createHash('sha256').update(String(i)).digest();
const hex = (digits: number) => (i: number) => hash(i).toString('hex').slice(0, digits);
const uuid = (i: number) => hex(32)(i).replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
const base64 = (bytes: number) => (i: number) => hash(i).subarray(0, bytes).toString('base64');
const url64 = (length: number) => (i: number) => hash(i).toString('base64url').slice(0, length);
const word = (i: number) => ['sales', 'ops', 'emea', 'q3', 'board', 'new', 'team-a', 'kpi'][hash(i)[0]! % 8]!;

describe('honest lists have no odd id', () => {
  test.each<[string, string[]]>([
    ['numbers that count up', many(1_050, (i) => String(i + 1))],
    ['names with a number that counts up', many(10_010, (i) => `view-${i}`)],
    ['long names with a number that counts up', many(1_005, (i) => `urn:acme:dashboard:view:${i + 1}`)],
    ['numbers with leading zeros', many(300, (i) => String(i * 7_919).padStart(10, '0'))],
    ['long numbers of several lengths', many(400, (i) => String((BigInt(i) + 1n) ** 7n * 1_000_003n))],
    ['UUIDs', many(5_000, uuid)],
    ['short hexadecimal ids, some without a letter', many(5_000, hex(8))],
    ['object ids', many(5_000, hex(24))],
    ['base64 with its marks', many(300, base64(16))],
    ['base64 of several lengths', many(300, (i) => base64(10 + (i % 3))(i))],
    [
      'base64 of a text with a number',
      many(1_500, (i) => Buffer.from(`gid://shop/Product/${9_500 + i}`).toString('base64')),
    ],
    ['numbers of negative and positive sign', many(300, (i) => String(i - 150))],
    ['names with a date', many(30, (i) => `job-2026-${String((i % 12) + 1).padStart(2, '0')}-05-${i * 40}`)],
    ['nanoids', many(2_000, url64(21))],
    ['few nanoids', many(25, url64(21))],
    ['short random ids', many(2_000, url64(6))],
    ['ids with a prefix', many(2_000, (i) => `cus_${url64(14)(i).replaceAll(/[-_]/g, 'x')}`)],
    ['words', many(500, (i) => `${word(i)}-${word(i + 1_000)}`)],
    ['words, a few with capital letters', many(500, (i) => (i % 200 === 0 ? 'Sales' : `${word(i)}-${word(2 * i)}`))],
    ['addresses, a few with an apostrophe', many(500, (i) => `${i % 250 ? word(i) : "o'brien"}@example.com`)],
    ['titles', many(300, (i) => `View ${i}: "Q${i % 4}"`)],
    ['characters beyond ASCII', many(300, (i) => `größe-${i}-日本`)],
    ['two kinds of ids, half and half', [...many(200, uuid), ...many(200, (i) => String(i + 1))]],
    ['two kinds of ids, one of them rare', [...many(970, uuid), ...many(30, (i) => String(i + 1))]],
    ['few ids', ['3f2a', 'ann 3f2a', 'Total']],
    ['nothing', []],
  ])('%s', (_, ids) => {
    expect(profileOf(ids).odd).toBe(0);
  });
});

describe('a few ids that look unlike all others are odd', () => {
  const uuids = many(200, uuid);
  test.each<[string, string[], string[]]>([
    ['text around an id', uuids, [`ann ${uuid(-1)}`]],
    ['an id in quotes', uuids, [`'${uuid(-1)}`]],
    ['an id that was cut for people', uuids, [`${uuid(-1).slice(0, 20)}…`]],
    ['an id that was cut off', uuids, [uuid(-1).slice(0, 30)]],
    ['two ids that were joined', uuids, [uuid(-1) + uuid(-2)]],
    ['a word below', uuids, ['Total']],
    ['a count below', uuids, ['200']],
    ['a sentence below', uuids, ['2 Row(s) produced. Time Elapsed: 0.137s']],
    ['a description of an object', uuids, ['[object Object]', '@{id=7}']],
    ['another case', uuids, [uuid(-1).toUpperCase()]],
    ['a word among numbers', many(200, (i) => String(i)), ['Total']],
    ['a number with its unit', many(200, (i) => String(i)), ['7 rows']],
    ['a number in a formula', many(200, (i) => String(i)), ['="0009"']],
    ['another name among names with numbers', many(200, (i) => `a-${i}`), ['null']],
    ['several of a short list', uuids, ['ann 3f2a', 'Total', '2 Row(s) produced.']],
    ['words among few ids', many(60, uuid), ['annotation', 'View']],
    ['numbers among few ids', many(60, hex(24)), ['17', 'page-2']],
    ['words among few numbers', many(60, (i) => String(7 * i)), ['annotation', 'View', 'ann.b']],
    ['one of a short list', many(20, uuid), ['(20 rows affected)']],
    ['text among ids of one length', many(200, url64(21)), ['System.Object[]']],
  ])('%s', (_, usual, odd) => {
    const middle = usual.length / 2;
    const profile = profileOf([...usual.slice(0, middle), ...odd, ...usual.slice(middle)]);
    expect(profile.odd).toBe(odd.length);
    const [main, ...others] = profile.shapes;
    expect(main).toMatchObject({ count: usual.length, like: usual[0], line: 1, isOdd: false });
    expect(others.map(({ like, line }) => [like, line])).toEqual(odd.map((id, i) => [id, middle + 1 + i]));
    const pattern = new RegExp(`^(?:${profile.pattern})$`);
    if (profile.pattern !== null)
      expect([usual, odd].map((ids) => ids.filter((id) => pattern.test(id)))).toEqual([usual, []]);
  });

  test('the message names the first, its place, and the pattern that leaves them out', () => {
    const profile = profileOf([...many(1_000, (i) => String(i + 1)), '1001 ', 'Total', '1003 ']);
    expect(explainOdd(profile)).toBe('3 ids do not look like the others, which are like "1": "1001 " in ids.csv:1001');
    expect(adviceOnOdd(profile)).toBe(
      "look at them in the list; to leave them out: --id-pattern '[0-9]+'; if they are ids too: --allow-mixed-ids",
    );
    expect(shapeText(profile, false)).toEqual([
      '1,000 like 1',
      '2 like "1001 " (line 1001)',
      '1 like Total (line 1002)',
    ]);
  });
});

test('a list of more shapes than are counted has no clear one', () => {
  const ids = many(5_000, (i) => `${'x'.repeat(i % 500)}${i % 2 ? '' : '-'}`.padEnd(1, 'y'));
  expect(profileOf(ids)).toMatchObject({ odd: 0, pattern: null });
});
