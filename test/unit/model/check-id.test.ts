import fc from 'fast-check';
import { expect, test } from 'vitest';
import { checkId, checkLine, idPath, strictRules } from '../../../src/model/check-id.ts';
import { sized } from '../../support/size.ts';

test.each([
  ['', 'empty_id'],
  ['.', 'dot_segment'],
  ['..', 'dot_segment'],
  ['a\ud800', 'lone_surrogate'],
  ['a\0b', 'control_character'],
  ['a\tb', 'control_character'],
  ['b\nc', 'control_character'],
  ['a\x7f', 'control_character'],
  ['a\x85b', 'control_character'],
  ['a/b', 'unsafe_character'],
  ['a\\b', 'unsafe_character'],
  ['%2e%2e', 'unsafe_character'],
  ['a?b', 'unsafe_character'],
  ['a#b', 'unsafe_character'],
  ['a;b', 'unsafe_character'],
  [' ', 'outer_white_space'],
  [' a', 'outer_white_space'],
  ['a ', 'outer_white_space'],
  ['a\u00a0', 'outer_white_space'],
  ['\u200ba', 'outer_white_space'],
  ['\ufeffa', 'outer_white_space'],
  ['a\u202c', 'outer_white_space'],
  ['a'.repeat(1025), 'too_long'],
  ['é'.repeat(513), 'too_long'],
  [`${'é'.repeat(512)}a`, 'too_long'],
  ['1.23457E+17', 'spreadsheet_number'],
  ['9E+5', 'spreadsheet_number'],
])('rejects %j as %s', (id, code) => {
  expect(checkId(id)).toBe(code);
});

// What spreadsheets and programs make of long numbers: a decimal comma or the Arabic separator, `##0.0E+0`, a format without decimals,
// a true minus, small letters (pandas, R, awk, JavaScript).
test.each([
  ...['1,2E+05', '1,23457E+17', '1٫2E+05', '-1,2E+05', '−1.2E+05', '123,5E+15', '12E+15', '1.E+05', '1,E+05'],
  ...['1.23457e+17', '1e+21', '1.2E-05', '1,2E-05', '1,2E−05', '1.7976931348623157E+308'],
])('rejects %j, the ruin of a number in scientific notation', (id) => {
  expect(checkId(id)).toBe('spreadsheet_number');
});

test.each([
  ...[
    '1.234.567',
    '1,234,567',
    '1.2',
    '1,2',
    "1'234",
    '1e3',
    '1E5',
    '12e10',
    '1E-05',
    '2e-4',
    '1.2e17',
    '1,2E05',
    '9e107d9d',
  ],
  ...['A1.2E+05', '1.2E+05x', '1.2.3E+05', '1,2,3E+05', '1.2E+5.0', '1234E+05', 'E+05', '1E+1234', '+1E', '1..2E+05'],
])('takes %j, which only looks like one', (id) => {
  expect(checkId(id)).toBeNull();
});

test.each([
  'a',
  '0007',
  '1e3',
  '12345678901234567890',
  '-rf',
  '=1+1',
  'a b',
  'a..b',
  '...',
  'e\u0301',
  'ü',
  '👍🏽',
  'a:b@c,d',
  "it's",
  'a'.repeat(1024),
])('accepts %j as it is', (id) => {
  expect(checkId(id)).toBeNull();
});

test.each([
  ['a/b', '/', null],
  ['a/b;c', '/', 'unsafe_character'],
  ['a/../b', '/', 'dot_segment'],
  ['reports/../../views/v-1', '/', 'dot_segment'],
  ['a/./b', '/', 'dot_segment'],
  ['a//b', '/', 'dot_segment'],
  ['/a', '/', 'dot_segment'],
  ['a/', '/', 'dot_segment'],
  ['a\\..\\b', '\\', 'dot_segment'],
  ['a/..\\b', '/\\', 'dot_segment'],
  ['a/..;x/b', '/;', 'dot_segment'],
  ['..;', ';', 'dot_segment'],
  ['%2e%2e', '%', 'dot_segment'],
  ['a%2f..%2Fb', '%', 'dot_segment'],
  ['a/%2E%2e/b', '/%', 'dot_segment'],
  ['a/..b/c', '/', null],
  ['a/.b/c.', '/', null],
  ['a%20b', '%', null],
  ['..', '/%', 'dot_segment'],
  [' a ', ' ', null],
  ['a\u00a0', ' ', 'outer_white_space'],
  [`${'a/'.repeat(513)}a`, '/', 'too_long'],
])('judges %j with %j allowed as %s', (id, allowed, code) => {
  expect(checkId(id, { ...strictRules, allowIdChars: allowed })).toBe(code);
});

test.each([
  ...[
    'NULL',
    'null',
    'Null',
    'undefined',
    'NaN',
    'nan',
    'None',
    'nil',
    'NA',
    '0',
    '(null)',
    '<null>',
    '[object Object]',
  ],
  ...[
    '<NA>',
    'NaT',
    '*',
    '_all',
    'all',
    'bulk',
    'TRUE',
    '-',
    '--',
    '~',
    '[]',
    '{}',
    '(none)',
    '<nil>',
    '(blank)',
    '"NULL"',
  ],
  ...[
    '00000000-0000-0000-0000-000000000000',
    'ffffffff-ffff-ffff-ffff-ffffffffffff',
    '{00000000-0000-0000-0000-000000000000}',
  ],
  ...['0'.repeat(24), '0'.repeat(64), 'F'.repeat(32), `0x${'0'.repeat(40)}`],
  ...['00', '000', '0000000000', '+0', '-0', '0x0', '0x00', '0e0', '0.0', '0,0', '٠', '०', '０', '-1'],
  ...['-01', '-1.0', '+0x0', '0_0', '.0', '0e+5', '0e-12'],
  ...['me', '@me', 'ME', 'ｍｅ', 'self', 'current', 'latest', 'primary'],
])('knows %j as what programs write where there is no id', (id) => {
  expect(checkId(id)).toBe('placeholder');
  expect(checkId(id, { ...strictRules, allowPlaceholders: true })).not.toBe('placeholder');
});

test.each([
  ...[
    '10',
    '01',
    '0001',
    '-10',
    '+1',
    '0x1',
    '0e1x',
    '0e12',
    '000e4616',
    '0-1',
    '0:0:1',
    '1',
    '١',
    'x0',
    'O',
    'f',
    'fff',
    'ffff-1',
  ],
  ...[
    'nulls',
    'null-1',
    'nano',
    '',
    'none of it',
    'me-1',
    'team',
    'name',
    'meme',
    'all-hands',
    'null-island',
    'selfie',
  ],
  ...['日本0', '()=-', '(2 rows)', 'not found', `${'0'.repeat(23)}1`, 'deadbeef'],
])('takes %j for an id', (id) => {
  expect(checkId(id)).not.toBe('placeholder');
});

test('encodes an id exactly once', () => {
  expect(idPath('views', 'a/%2F é')).toBe('/v2/views/a%2F%252F%20%C3%A9');
});

const hostile = fc.string({
  unit: fc.constantFrom(...'ab.%2eEF/\\?#; \t\n\0\ud800\u00a0\u200b:@\'"<>|^`{}~é👍'.split('')),
});
const anyId = fc.oneof(hostile, fc.string({ unit: 'binary' }), fc.string({ unit: 'grapheme' }));

/** @invariant one-object: An accepted id addresses exactly one object. */
test('every id that is accepted addresses one object: a URL parser keeps its path, and the id can be read back', () => {
  fc.assert(
    fc.property(anyId, fc.constantFrom('', '/\\%?#; '), (id, allowed) => {
      fc.pre(checkId(id, { ...strictRules, allowIdChars: allowed, allowInvisible: true }) === null);
      const path = idPath('annotations', id);
      const url = new URL(`https://h/p${path}`);
      expect([url.pathname, url.search, url.hash]).toEqual([`/p${path}`, '', '']);
      const segments = url.pathname.split('/');
      expect(segments).toHaveLength(5);
      expect(decodeURIComponent(segments[4]!)).toBe(id);
    }),
    { numRuns: sized(200, 2_000) },
  );
});

test('an id may have 1,024 bytes', () => {
  expect([checkId('a'.repeat(1_024)), checkId('é'.repeat(512))]).toEqual([null, null]);
});

test.each([
  ['a\u00a0b', 'invisible_character'],
  ['a\u200bb', 'invisible_character'],
  ['a\ufeffb', 'invisible_character'],
  ['a\u202eb', 'invisible_character'],
  ['a\u2800b', 'invisible_character'],
  ['a\u3164b', 'invisible_character'],
  ['123.0', 'spreadsheet_number'],
  ['-5.00', 'spreadsheet_number'],
  ['---------', 'table_text'],
  ['+----+----+', 'table_text'],
  ['\u2500\u2500\u253c\u2500', 'table_text'],
])('rejects %j as %s, unless ids may look like that', (id, code) => {
  expect(checkId(id)).toBe(code);
  const rules = { ...strictRules, allowInvisible: true, allowDamagedNumbers: true, allowPlaceholders: true };
  expect(checkId(id, rules)).toBeNull();
});

test.each([
  ['"a"', 'outer_punctuation'],
  ["'a',", 'outer_punctuation'],
  ['a,', 'outer_punctuation'],
  ['| a |', 'outer_punctuation'],
  ['<html>', 'outer_punctuation'],
  ['a b', 'inner_white_space'],
  ['curl: (22) The requested URL returned error: 401', 'inner_white_space'],
  ['a,b', 'several_values'],
  ['a|b', 'several_values'],
  ["it's", null],
  ['[a1]', null],
])('says of the line %j: %s', (line, code) => {
  expect(checkLine(line, '')).toBe(code);
  expect(checkLine(line, '"\',|<> ')).toBeNull();
});
