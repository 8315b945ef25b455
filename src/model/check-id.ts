import { anyResource, collectionPath, type Resource } from './resource.ts';
import type { RejectCode } from './row.ts';

/** Most bytes of UTF-8 an id may have. */
const maxIdBytes = 1024;

/** The path of one object below the base URL. Throws URIError for an id with a lone surrogate, which `checkId` rejects. */
export function idPath(resource: Resource, id: string): string {
  return collectionPath(resource) + (plain.test(id) ? id : encodeURIComponent(id));
}

// Ids of this shape pass every check below and need no encoding: most lists cost one test per id.
const plain = /^[A-Za-z0-9_-]{1,1024}$/;

/**
 * Why this id must not be sent, or null. Ids are opaque: nothing is trimmed, cast or guessed; only an id whose request could reach
 * another object is rejected. `allowed`: those characters of / \ % ? # ; and the space that ids may hold nevertheless.
 */
export function checkId(id: string, allowed = ''): RejectCode | null {
  if (plain.test(id)) return null;
  return checkCharacters(id, allowed) ?? checkShape(id);
}

/** Whether this is a text that programs write for a missing id. It is a valid id, so a target would look for such an object. */
export function isPlaceholder(id: string): boolean {
  return id.length <= longestPlaceholder && placeholders.has(id.toLowerCase());
}

const placeholders = new Set([
  ...['null', 'undefined', 'nan', 'none', 'nil', 'na', '0', '(null)', '<null>', '[object object]'],
]);
const longestPlaceholder = Math.max(...[...placeholders].map((text) => text.length));

function checkCharacters(id: string, allowed: string): RejectCode | null {
  if (id === '') return 'empty_id';
  // In a path, `.` is the collection and `..` its parent; encoding them does not help.
  if (id === '.' || id === '..') return 'dot_segment';
  if (/\p{Surrogate}/u.test(id)) return 'lone_surrogate';
  if (/[\x00-\x1f\x7f-\x9f]/.test(id)) return 'control_character';
  // Encoded, these are harmless in theory; in practice proxies decode %2F and normalize the path.
  if ([...(id.match(/[/\\%?#;]/g) ?? [])].some((found) => !allowed.includes(found))) return 'unsafe_character';
  return hasOuterWhiteSpace(id, allowed) ? 'outer_white_space' : null;
}

/** Whether the id begins or ends with white space or an invisible character (zero width, direction marks). */
function hasOuterWhiteSpace(id: string, allowed: string): boolean {
  const ends = id.match(/^[\s\p{Z}\p{Cf}]|[\s\p{Z}\p{Cf}]$/gu) ?? [];
  return ends.some((end) => end !== ' ' || !allowed.includes(' '));
}

// A long number that a spreadsheet or a program has shortened: 1.2E+05, 1,2E+05 (decimal comma), 123.5E+15, 1.2e+05. The sign of the
// exponent distinguishes it from an id like 1e3; a negative exponent needs decimals, so that 2e-4 stays an id.
const scientific = /^[-−]?\d{1,3}(?:(?:[.,٫]\d*)?e\+|[.,٫]\d+e[-−])\d{1,3}$/i;

function checkShape(id: string): RejectCode | null {
  if (Buffer.byteLength(id) > maxIdBytes) return 'too_long';
  if (scientific.test(id)) return 'spreadsheet_number';
  return isStable(idPath(anyResource, id)) ? null : 'path_not_stable';
}

/** Whether a URL parser leaves the path alone, byte for byte. */
function isStable(path: string): boolean {
  const url = new URL(`http://host${path}`);
  return url.pathname === path && url.search === '' && url.hash === '';
}
