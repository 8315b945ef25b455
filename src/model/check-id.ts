import { anyResource, pathParts, type Resource } from './resource.ts';
import type { RejectCode } from './row.ts';
import { hasInvisible } from './visible.ts';

/** The longest id, in bytes of UTF-8. */
const maxIdBytes = 1024;

/** The path of one object below the base URL. Throws URIError for an id with a lone surrogate, which `checkId` rejects. */
export function idPath(resource: Resource, id: string): string {
  return pathMaker(resource)(id);
}

/** A function that gives the path of each object of a resource. Throws an Error for a resource that this process does not know. */
export function pathMaker(resource: Resource): (id: string) => string {
  const [before, after] = pathParts(resource);
  return (id) => before + (plain.test(id) ? id : encodeURIComponent(id)) + after;
}

const plain = /^[A-Za-z0-9_-]{1,1024}$/;

/** Whether an id holds only letters, digits, `-` and `_`, as nearly all ids do. */
export function isPlain(id: string): boolean {
  return plain.test(id);
}

/** Whether the id has a digit at this place. */
export function isDigit(id: string, at: number): boolean {
  const code = id.charCodeAt(at);
  return code >= 48 && code <= 57;
}

/** Unusual contents that ids may have, although they usually mean that something went wrong. */
export type IdRules = {
  /** The characters out of / \ % ? # ; " ' ` , * | < > and the space that ids may hold. */
  allowIdChars: string;
  allowPlaceholders: boolean;
  allowInvisible: boolean;
  allowDamagedNumbers: boolean;
};

/** The rules of a list whose ids hold nothing unusual. */
export const strictRules: IdRules = {
  allowIdChars: '',
  allowPlaceholders: false,
  allowInvisible: false,
  allowDamagedNumbers: false,
};

/**
 * Why this id must not be sent, or null. Ids are opaque: nothing is trimmed, cast or guessed. An id is rejected if its request could reach another
 * object, or if it is the text that programs leave in place of a lost id. `plainly`: whether it `isPlain`.
 */
export function checkId(id: string, rules: IdRules = strictRules, plainly = isPlain(id)): RejectCode | null {
  if (!rules.allowPlaceholders) {
    const reject = checkPlaceholder(id, plainly);
    if (reject !== null) return reject;
  }
  if (plainly) return null;
  return checkCharacters(id, rules) ?? checkShape(id, rules);
}

/** Whether a text stands for no object, for all of them or for whoever asks, in any spelling, or is nothing but marks. */
function checkPlaceholder(id: string, plainly: boolean): RejectCode | null {
  const first = id.charCodeAt(0);
  // Ten million ids are checked, so looking at one character is enough for most of them.
  if (first < 128 && mayBegin[first] === 0) return null;
  if (id.length > maxWordLength && first < 128 && mayBegin[first] === ofWordsOnly) return null;
  if (isBorder(id)) return id.length < 3 ? 'placeholder' : 'table_text';
  return standsForNone.test(plainly ? id : plainDigits(id)) ? 'placeholder' : null;
}

const words = [
  ...['null', 'undefined', 'nan', 'none', 'nil', 'na', 'nat', 'empty', 'blank', 'true', 'false', 'object object'],
  // An API may take these for a route of its own, for all objects, or for the object of whoever asks.
  ...['all', 'bulk', 'batch', 'search', 'delete', 'me', 'self', 'current', 'latest', 'primary'],
];

/**
 * No number and the number before all others, as servers read them: 0, 000, +0, 0x0, 0e0, 0.0, -1. 0e12 is none: it can be a random id in hexadecimal
 * digits. A UUID or a hash without a bit, or of all bits.
 */
const zero = '[+-]?(?:0[0_]*(?:[.,]0*)?|[.,]0+)(?:e(?:[+-]\\d+|0))?';
const numbers = [zero, '[+-]?0x0+', '-0*1(?:[.,]0*)?', '[0-]{24,}', '[f-]{24,}'];

const mark = '[ !-/:-@[-`{-~\u2500-\u257f]';
const standsForNone = new RegExp(`^[@#_:"'\`([{<]{0,2}(?:${[...words, ...numbers].join('|')})[_"'\`)\\]}>]{0,2}$`, 'i');

const onlyMarks = new RegExp(`^${mark}+$`);

/** Whether a text is one mark or two, repeated: the border of a printed table, or empty brackets. A path cannot hold some marks, which is reported. */
function isBorder(id: string): boolean {
  return onlyMarks.test(id) && new Set(id).size <= 2 && !/[./\\%#;?]|^ *$/.test(id);
}

const ofWordsOnly = 1;
const maxWordLength = 4 + Math.max(...words.map(({ length }) => length));

/** By ASCII code: 1 if only words begin so, 2 if other texts of that meaning do, too. */
const mayBegin = Uint8Array.from({ length: 128 }, (_, code) => {
  const character = String.fromCharCode(code).toLowerCase();
  if (/[0f]/.test(character) || new RegExp(mark).test(character)) return 2;
  return words.some((word) => word.startsWith(character)) ? ofWordsOnly : 0;
});

/** A text with its digits as ASCII digits, and its other characters as plain as Unicode has them. */
function plainDigits(id: string): string {
  return id.normalize('NFKC').replace(/(?!\d)\p{Nd}/gu, (digit) => {
    const code = digit.codePointAt(0)!;
    let zero = code; // the ten digits of a script follow one another
    while (code - zero < 9 && /\p{Nd}/u.test(String.fromCodePoint(zero - 1))) zero -= 1;
    return String(code - zero);
  });
}

function checkCharacters(id: string, { allowIdChars: allowed, allowInvisible }: IdRules): RejectCode | null {
  if (id === '') return 'empty_id';
  if (/\p{Surrogate}/u.test(id)) return 'lone_surrogate';
  if (/[\x00-\x1f\x7f-\x9f]/.test(id)) return 'control_character';
  // Encoded, these are harmless in theory. In practice, proxies decode %2F and normalize the path.
  if ([...(id.match(/[/\\%?#;]/g) ?? [])].some((character) => !allowed.includes(character))) return 'unsafe_character';
  if (hasDotSegment(id)) return 'dot_segment';
  if (hasOuterWhiteSpace(id, allowed)) return 'outer_white_space';
  return !allowInvisible && hasInvisible(id) ? 'invisible_character' : null;
}

/**
 * Whether a server that decodes the id could read it, or a part of it, as the folder itself, its parent or nothing: `.`, `..`, `a/../b`, `a//b`,
 * `%2e%2e`, and `..;x`, whose end some servers drop.
 */
function hasDotSegment(id: string): boolean {
  const decoded = id.replace(/%2e/gi, '.').replace(/%2f|%5c/gi, '/');
  if (!/[./\\]/.test(decoded)) return false;
  const segments = decoded.split(/[/\\]/);
  return segments.some((segment) => /^(?:\.{1,2}(?:[;?#].*)?)?$/s.test(segment));
}

/** Whether the id begins or ends with white space or an invisible character (zero width, direction marks). */
function hasOuterWhiteSpace(id: string, allowed: string): boolean {
  const ends = id.match(/^[\s\p{Z}\p{Cf}]|[\s\p{Z}\p{Cf}]$/gu) ?? [];
  return ends.some((end) => end !== ' ' || !allowed.includes(' '));
}

// A long number that a spreadsheet or a program has shortened: 1.2E+05, 1,2E+05 (decimal comma), 123.5E+15, 1.2e+05. The sign of the exponent
// distinguishes it from an id like 1e3; a negative exponent needs decimals, so that 2e-4 stays an id.
const scientific = /^[-−]?\d{1,3}(?:(?:[.,٫]\d*)?e\+|[.,٫]\d+e[-−])\d{1,3}$/i;

// A whole number that was read as a decimal number, as pandas does with a column that has gaps.
const decimal = /^-?\d+\.0+$/;

function checkShape(id: string, { allowDamagedNumbers }: IdRules): RejectCode | null {
  if (Buffer.byteLength(id) > maxIdBytes) return 'too_long';
  if (!allowDamagedNumbers && (scientific.test(id) || decimal.test(id))) return 'spreadsheet_number';
  return isStable(idPath(anyResource, id)) ? null : 'path_not_stable';
}

/** Whether a URL parser keeps the path unchanged, byte for byte. */
function isStable(path: string): boolean {
  const url = new URL(`http://host${path}`);
  return url.pathname === path && url.search === '' && url.hash === '';
}

/**
 * Why a line of plain text is not an id, or null: it holds white space, or begins or ends with a character that quotes or separates values. In other
 * formats such characters were quoted on purpose. `allowed`: characters that ids may hold nevertheless.
 */
export function checkLine(line: string, allowed: string): RejectCode | null {
  const isAllowed = (character: string | undefined) => character === undefined || allowed.includes(character);
  const ends = [/^["'`|<]/.exec(line)?.[0], /["'`,|>]$/.exec(line)?.[0]];
  if (!ends.every(isAllowed)) return 'outer_punctuation';
  if (!isAllowed(/(?<=\S)[\s\p{Z}](?=.*\S)/u.exec(line)?.[0])) return 'inner_white_space';
  return checkSeparators(line, ',*|', allowed);
}

/** Whether an id holds one of these characters, and so may be several ids: some APIs delete all objects of `7,8`, or of `12*`. */
export function checkSeparators(id: string, separators: string, allowed: string): RejectCode | null {
  for (const separator of separators)
    if (id.includes(separator) && !allowed.includes(separator)) return 'several_values';
  return null;
}
