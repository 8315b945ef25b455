import { anyResource, collectionPath, type Resource } from './resource.ts';
import type { RejectCode } from './row.ts';

/** Most bytes of UTF-8 an id may have. */
const maxIdBytes = 1024;

/** The path of one object below the base URL. Throws URIError for an id with a lone surrogate, which `checkId` rejects. */
export function idPath(resource: Resource, id: string): string {
  return collectionPath(resource) + (plain.test(id) ? id : encodeURIComponent(id));
}

// Ids of this shape pass every check below and need no encoding, so that most lists cost one test an id.
const plain = /^[A-Za-z0-9_-]{1,1024}$/;

/**
 * Why this id must not be sent, or null. Ids are opaque: nothing is trimmed, cast or guessed; only what could reach another
 * object on its way is refused. `allowed` lists characters of / \ % ? # ; and the space that ids may hold all the same.
 */
export function checkId(id: string, allowed = ''): RejectCode | null {
  if (plain.test(id)) return null;
  return checkCharacters(id, allowed) ?? checkShape(id);
}

/** Whether this is what programs write where an id is missing. A target would look for an object of that name. */
export function isPlaceholder(id: string): boolean {
  return id.length <= longestPlaceholder && placeholders.has(id.toLowerCase());
}

const placeholders = new Set([
  ...['null', 'undefined', 'nan', 'none', 'nil', 'na', '0', '(null)', '<null>', '[object object]'],
]);
const longestPlaceholder = Math.max(...[...placeholders].map((text) => text.length));

function checkCharacters(id: string, allowed: string): RejectCode | null {
  if (id === '') return 'empty_id';
  // In a path, `.` is the collection and `..` its parent; no way of encoding them helps.
  if (id === '.' || id === '..') return 'dot_segment';
  if (/\p{Surrogate}/u.test(id)) return 'lone_surrogate';
  if (/[\x00-\x1f\x7f-\x9f]/.test(id)) return 'control_character';
  // Encoded correctly these are harmless, but proxies decode %2F and fold the path.
  if ([...(id.match(/[/\\%?#;]/g) ?? [])].some((found) => !allowed.includes(found))) return 'unsafe_character';
  return hasOuterWhiteSpace(id, allowed) ? 'outer_white_space' : null;
}

/** Whether the id begins or ends with white space or an invisible character (zero width, direction marks). */
function hasOuterWhiteSpace(id: string, allowed: string): boolean {
  const ends = id.match(/^[\s\p{Z}\p{Cf}]|[\s\p{Z}\p{Cf}]$/gu) ?? [];
  return ends.some((end) => end !== ' ' || !allowed.includes(' '));
}

// What is left of a long number in scientific notation: 1.2E+05, 1,2E+05 where the comma is decimal, 123.5E+15, 1.2e+05 of programs. The sign
// of the exponent is what tells it from an id like 1e3, and before a minus there must be decimals, as in no 2e-4.
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
