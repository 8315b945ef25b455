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
