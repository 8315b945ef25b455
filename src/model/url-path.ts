/**
 * The path of a base URL without a trailing slash, in which `%70` is `p`, so that one path has one text. Throws an Error for a path that some servers
 * read as another one: `/eu/..%2Fus` can be `/us`.
 */
export function plainPath({ pathname }: URL): string {
  const path = pathname.replace(/%[\da-f]{2}/gi, plainEscape).replace(/\/+$/, '');
  if (!/\/\/|%2F|%5C|%25|\/\.{0,2};/.test(path)) return path;
  throw new Error(`expected a path that every server reads alike, without // %2F %5C %25 and ..; in it, got "${path}"`);
}

/** An escaped letter, digit, `-`, `.`, `_` or `~` means the character itself (RFC 3986 §6.2.2.2). */
function plainEscape(escaped: string): string {
  const character = String.fromCharCode(Number.parseInt(escaped.slice(1), 16));
  return /[\w.~-]/.test(character) ? character : escaped.toUpperCase();
}
