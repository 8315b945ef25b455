import fc from 'fast-check';
import { expect, test } from 'vitest';
import { sized } from '../../support/size.ts';
import { brief, collect, fixture, inputOf } from './read-text.ts';

test('takes strings and whole numbers that kept their text, and rejects the rest', async () => {
  expect(brief(await fixture('strange-records.ndjson'))).toEqual([
    'a1',
    'a2',
    '42',
    '12345678901234567890',
    '1e3 unsafe_number',
    '9007199254740993',
    '-0 unsafe_number',
    '{"id":null} not_a_string',
    '{"id":["a"]} not_a_string',
    'missing_id',
    '7',
    '7',
    '\ud800 lone_surrogate',
  ]);
});

test.each([
  ['{"_id":{"$oid":"a1"}}', '_id.$oid', ['a1']],
  ['{"Item":{"name":{"S":"n"},"id":{"S":"a1"}}}', 'Item.id.S', ['a1']],
  ['{"id":{"S":"7"}}', 'id.S', ['7']],
  ['{"preview":false,"result":{"id":7}}', 'result.id', ['7']],
  ['{"hits":{"total":2,"hits":[{"_index":"x","_id":"a1"},{"_id":"a2"}]}}', 'hits.hits._id', ['a1', 'a2']],
  ['{"data":[{"id":1},{"id":"b"},{"x":1},{"id":null}]}', 'data.id', ['1', 'b', 'missing_id', '{']],
  ['{"view":{"annotation_id":5,"title":"t"}}', 'view.annotation_id', ['5']],
  ['{"user":{"id":7},"annotation":{"id":5}}', 'annotation.id', ['5']],
  ['{"user":{"id":7},"event":{"target":{"id":5,"type":"annotation"}}}', 'event.target.id', ['5']],
  ['{"type":"annotation","uuid":"u","view":{"id":7}}', 'uuid', ['u']],
  ['{"meta":{"a.b":1},"data":{"deep":{"guid":"g"}}}', 'data.deep.guid', ['g']],
])('finds the id deep in %s, names it, and takes it by its path', async (line, path, ids) => {
  const file = [inputOf('x.ndjson', `${line}\n`)];
  await expect(collect(file)).rejects.toMatchObject({
    advice: `name the field of the ids, as in --column ${path.includes('$') ? `'${path}'` : path}`,
  });
  expect(brief(await collect(file, { column: path })).map((row) => row.replace(/^\{.*/, '{'))).toEqual(ids);
});

test('names all ids deep in a record if none is of the resource', async () => {
  const file = [inputOf('x.ndjson', '{"team":{"id":7},"post":{"id":5}}\n')];
  const advice = 'name the field of the ids, as in --column team.id or --column post.id';
  await expect(collect(file)).rejects.toMatchObject({ advice });
});

test.each([
  ['{"a.id":"x","a":{"id":"y"}}', 'x'],
  ['{"a":{"id":"y","id":"z"}}', '{"a":{"id":"y","id":"z"}} duplicate_key'],
  ['{"a":{"id":"y"},"\\u0061":{"id":"z"}}', '{"a":{"id":"y"},"\\u0061":{"id":"z"}} duplicate_key'],
  ['{"a":{"id":1.0}}', '1.0 unsafe_number'],
  ['{"a":{"id":1e3},"id":1000}', '1e3 unsafe_number'],
  ['{"a":{"id":12345678901234567890}}', '12345678901234567890'],
  ['{"a":[]}', undefined],
  ['{"a":7}', 'missing_id'],
  ['{"b":{"id":"y"}}', 'missing_id'],
])('by a path takes of %s what is there and nothing else', async (line, row) => {
  expect(brief(await collect([inputOf('x.ndjson', line)], { column: 'a.id' }))).toEqual(row === undefined ? [] : [row]);
});

const long = ['1234567890123456789', '1334567890123456787', '1434567890123456001'];

test('takes numbers of any length as they are written, once one shows that its writer keeps all digits', async () => {
  const lines = (numbers: readonly string[]) => [
    inputOf('x.ndjson', numbers.map((number) => `{"id":${number}}\n`).join('')),
  ];
  expect(brief(await collect(lines(['7', ...long, '-9007199254740993'])))).toEqual(['7', ...long, '-9007199254740993']);
  const written = {
    'as JavaScript and jq write them': long.map((number) => String(Number(number))),
    'as C and Go write doubles': long.map((number) => BigInt(Number(number)).toString()),
    'as a spreadsheet leaves them': long.map((number) => `${number.slice(0, 15)}0000`),
    'of which one says nothing': ['9007199254740994'],
  };
  for (const [how, numbers] of Object.entries(written)) {
    await expect(collect(lines(['7', ...numbers])), how).rejects.toThrow(
      `x.ndjson:2: the number "${numbers[0]}" has more digits than most programs keep`,
    );
    expect(brief(await collect(lines(numbers), { allowDamagedNumbers: true })), how).toEqual(numbers);
  }
});

test('names the longest array of an object that is no array', async () => {
  const table = '{"columns":["id"],"rows":[{"id":"a"},{"id":"b"}]}';
  const next = expect.stringContaining("jq -c '.rows[]' x.json");
  await expect(collect([inputOf('x.json', table)])).rejects.toMatchObject({ next });
});

test('takes the objects of pages in an array, and no list of texts', async () => {
  const pages = '[[{"id":"a"},{"id":"b"}],[],[{"id":"c"}],["d","title"]]';
  expect(brief(await collect([inputOf('x.json', pages)]))).toEqual([
    'a',
    'b',
    '[] not_a_string',
    'c',
    '["d","title"] not_a_string',
  ]);
});

test('takes the objects of a page as they are written', async () => {
  const page = '[[{"id":"a","id":"b"}, {"id":1.0},{"id":2}, {"id":12345678901234567}]]';
  expect(brief(await collect([inputOf('x.json', page)]))).toEqual([
    '{"id":"a","id":"b"} duplicate_key',
    '1.0 unsafe_number',
    '2',
    '12345678901234567',
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
    const given = { column: 'id', allowDamagedNumbers: true };
    const [row] = await collect([inputOf('x.ndjson', `{${written.join(',')}}`)], given);
    expect(row?.reject === 'duplicate_key').toBe(isTwice);
  };
  await fc.assert(fc.asyncProperty(fc.array(anyMember, { maxLength: 6 }), check), { numRuns: sized(50, 500) });
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

test('takes the elements of an array, objects or strings, and numbers them', async () => {
  const array =
    '\ufeff [ "a1" ,\n{"id":"a,]2","x":[1,{"y":"]"}]}, {"id":42}\r\n,"a\\"]4", null, {"k":"views"} , ["a"]]\n ';
  const read = (piece?: number) => collect([inputOf('x.json', array, piece)], { allowIdChars: ',' });
  const rows = await read();
  expect(brief(rows)).toEqual(['a1', 'a,]2', '42', 'a"]4', 'null not_a_string', 'missing_id', '["a"] not_a_string']);
  expect(rows.map((row) => row.line)).toEqual([1, 2, 3, 4, 5, 6, 7]);
  for (const piece of [1, 2, 3, 5, 7]) expect(await read(piece)).toEqual(rows);
});

test('takes resources from the elements of an array, and rejects a key that stands twice', async () => {
  const array = '[{"k":"views","n":"a"},{"k":"users","n":"b"},"c",{"k":"views","n":"d","n":"e"}]';
  const rows = await collect([inputOf('x.json', array)], { column: 'n', resource: null, resourceColumn: 'k' });
  expect(brief(rows)).toEqual([
    'a',
    'b unknown_resource',
    'c unknown_resource',
    '{"k":"views","n":"d","n":"e"} duplicate_key',
  ]);
});

test('takes an empty array as no rows, and an array from a pipe without a line end as whole', async () => {
  for (const array of ['[]', ' [ \n ] ']) expect(await collect([inputOf('x.json', array)])).toEqual([]);
  expect(brief(await collect([inputOf('(stdin)', '["a1"]')], { format: 'json' }))).toEqual(['a1']);
});

test('reads any array as the parser does, in whatever pieces it comes', async () => {
  const check = async (values: unknown[], space: number, piece: number) => {
    const rows = await collect([inputOf('x.json', JSON.stringify(values, null, space), piece)], {
      column: 'no such',
      allowDamagedNumbers: true,
    });
    const isObject = (value: unknown) => typeof value === 'object' && value !== null && !Array.isArray(value);
    const ids = values.flatMap((value) => {
      if (typeof value === 'string') return value;
      if (Array.isArray(value) && value.length > 0 && value.every(isObject)) return value.map(() => '');
      return isObject(value) ? '' : JSON.stringify(value, null, 0);
    });
    const compact = (id: string) => (id.startsWith('[') ? JSON.stringify(JSON.parse(id)) : id);
    expect(rows.map((row, i) => (ids[i] === row.id ? row.id : compact(row.id)))).toEqual(ids);
  };
  const values = fc.array(fc.jsonValue(), { maxLength: 8 });
  await fc.assert(fc.asyncProperty(values, fc.nat(2), fc.integer({ min: 1, max: 20 }), check), {
    numRuns: sized(30, 300),
  });
});

test.each([
  ['', 'x.json: expected a JSON array, got nothing'],
  ['{"id":"a1"}', 'x.json: expected a JSON array, got an object'],
  ['"a1"', 'x.json: expected a JSON array, got something else'],
  ['["a1","a2"', 'x.json: the JSON array has no end'],
  ['["a1","a2', 'x.json: the JSON array has no end'],
  ['["a1"] "a2"', 'x.json: something other than a JSON array follows'],
  ['["a1",]', 'x.json: element 2 of the array: expected one JSON object or string, got something else'],
  ['["a1",,"a2"]', 'x.json: element 2 of the array: expected'],
  ['["a1" "a2"]', 'x.json: element 1 of the array: expected'],
  ['["a1",{"id":"a2"]', 'x.json: the JSON array has no end'],
  ['["a1"},"a2"]', 'x.json: element 1 of the array: expected'],
  ['["a1",{"id":]}]', 'x.json: element 2 of the array: expected'],
])('refuses %j, which is no JSON array', async (content, message) => {
  await expect(collect([inputOf('x.json', content)])).rejects.toMatchObject({
    code: 'USAGE',
    message: expect.stringContaining(message),
  });
});

test('suggests no format in which JSON would be taken for ids', async () => {
  await expect(collect([inputOf('x.json', '{"items":["a1"]}')])).rejects.toMatchObject({
    next: expect.stringMatching(/jq.*--format ndjson/s),
  });
  await expect(collect([inputOf('x.jsonl', '["a1","a2"]')])).rejects.toMatchObject({
    message: expect.stringContaining('x.jsonl:1: expected one JSON object or string per line, got an array'),
    next: 'use --format json',
  });
});

test('refuses an element longer than 1 MiB, as a quote that is not closed makes of a whole file', async () => {
  const file = inputOf('x.json', `["a1","${'x'.repeat(1_200_000)}`);
  await expect(collect([file])).rejects.toThrow('x.json: element 2 of the array is longer than 1 MiB');
});
