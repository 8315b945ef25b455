import fc from 'fast-check';
import { expect, test } from 'vitest';
import { brief, collect, fixture, inputOf } from './read-text.ts';

test('takes strings and whole numbers that kept their text, and rejects the rest', async () => {
  expect(brief(await fixture('strange-records.ndjson'))).toEqual([
    'a1',
    'a2',
    '42',
    '12345678901234567890 unsafe_number',
    '1e3 unsafe_number',
    '9007199254740993 unsafe_number',
    '-0 unsafe_number',
    'null not_a_string',
    '["a"] not_a_string',
    'missing_id',
    '7 not_a_string',
    '7',
    '\ud800 lone_surrogate',
  ]);
});

test('numbers lines past blank ones', async () => {
  const rows = await collect([inputOf('x.jsonl', '{"id":"a"}\r\n\r\n  \n{"id":"b"}')]);
  expect(rows.map((row) => row.line)).toEqual([1, 4]);
});

test('refuses a line that is not JSON, without repeating it', async () => {
  const failure = fixture('broken-line.ndjson');
  await expect(failure).rejects.toThrow('broken-line.ndjson:2: expected one JSON object or string');
  await expect(failure).rejects.not.toThrow('a2');
});

test('takes ids and resources from named fields, and only from own ones', async () => {
  const lines = ['{"k":"views","n":"a"}', '{"k":"users","n":"b"}', '{"n":"c"}', '"d"', '{"k":"views"}'].join('\n');
  const rows = await collect([inputOf('x.ndjson', lines)], { column: 'n', resource: null, resourceColumn: 'k' });
  expect(brief(rows)).toEqual(['a', 'b unknown_resource', 'c unknown_resource', 'd unknown_resource', 'missing_id']);
  expect(brief(await collect([inputOf('x.ndjson', '{}')], { column: 'toString' }))).toEqual(['missing_id']);
});

test.each([
  ['{"id":"x","id":"y"}', '{"id":"x","id":"y"} duplicate_key'],
  ['{"id":"x","id":"x"}', '{"id":"x","id":"x"} duplicate_key'],
  ['{"id":"x","\\u0069d":"y"}', '{"id":"x","\\u0069d":"y"} duplicate_key'],
  ['{ "id" :1,"a":[{"id":2}], "id" : 3 }', '{ "id" :1,"a":[{"id":2}], "id" : 3 } duplicate_key'],
  ['{"id":"x","id":null}', '{"id":"x","id":null} duplicate_key'],
  ['{"id":"\\"id\\":","id":"y"}', '{"id":"\\"id\\":","id":"y"} duplicate_key'],
  ['{"k":"views","id":"x","k":"annotations"}', '{"k":"views","id":"x","k":"annotations"} duplicate_key'],
  ['{"k":"views","id":"x","\\u006b":"views"}', '{"k":"views","id":"x","\\u006b":"views"} duplicate_key'],
])('rejects %s, which says twice what its id or resource is', async (line, row) => {
  const rows = await collect([inputOf('x.ndjson', line)], { resource: null, resourceColumn: 'k' });
  expect(brief(rows)).toEqual([row]);
});

test.each([
  '{"id":"x","owner":{"id":"y"}}',
  '{"owner":{"id":"y","id":"z"},"id":"x"}',
  '{"a":1,"a":2,"id":"x"}',
  '{"id":"x","note":"\\"id\\":1,\\"id\\":2"}',
  '{"id":"x","list":["id","id"],"kind":"id"}',
  '{"id":"x","iD":"y","id ":"z","__proto__":"id"}',
  '{"id":"x","note":"\\\\","ID":"y"}',
])('takes the id of %s, where another key or an inner object has one twice', async (line) => {
  expect(brief(await collect([inputOf('x.ndjson', line)]))).toEqual(['x']);
});

const anyKey = fc.oneof(fc.constantFrom('id', 'ID', 'i', '"id"', '\\', ''), fc.string({ unit: 'binary' }));
const escaped = (key: string) =>
  `"${key.replace(/./gs, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)}"`;
const anyMember = fc.record({
  key: anyKey,
  isEscaped: fc.boolean(),
  value: fc.jsonValue(),
  space: fc.constantFrom('', ' '),
});

test('finds among any members, however they are written, a key that stands twice', async () => {
  const check = async (members: { key: string; isEscaped: boolean; value: unknown; space: string }[]) => {
    const written = members.map(({ key, isEscaped, value, space }) => {
      return `${isEscaped ? escaped(key) : JSON.stringify(key)}${space}:${space}${JSON.stringify(value)}`;
    });
    const isTwice = members.filter(({ key }) => key === 'id').length > 1;
    const [row] = await collect([inputOf('x.ndjson', `{${written.join(',')}}`)]);
    expect(row!.reject === 'duplicate_key').toBe(isTwice);
  };
  await fc.assert(fc.asyncProperty(fc.array(anyMember, { maxLength: 6 }), check), { numRuns: 500 });
});

test('finds a key that stands twice whatever characters it has', async () => {
  const line = '{"a\\"\\\\b":"x","\\u0061\\"\\\\b":"y"}';
  expect(brief(await collect([inputOf('x.ndjson', line)], { column: 'a"\\b' }))).toEqual([`${line} duplicate_key`]);
  expect(brief(await collect([inputOf('x.ndjson', '{"é":"x","\\u00e9":"y"}')], { column: 'é' }))[0]).toContain(
    'duplicate_key',
  );
  expect(
    brief(await collect([inputOf('x.ndjson', '{"__proto__":"x","__proto__":"y"}')], { column: '__proto__' }))[0],
  ).toContain('duplicate_key');
});
