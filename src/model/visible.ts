// The only place that decides which characters are invisible, and how people see them.

/**
 * Characters that leave no mark on a screen or change the order of others: zero-width and direction marks, byte order marks, fillers, white space
 * other than the plain space. Two ids that differ only in such characters look alike.
 */
const invisible = /[\p{Default_Ignorable_Code_Point}\p{Cf}\p{Zl}\p{Zp}\u2800]|(?! )\p{Zs}/u;
const invisibleOrControl = new RegExp(`${invisible.source}|\\p{Cc}|\\p{Surrogate}`, 'gu');

/** Whether a text holds an invisible character. */
export function hasInvisible(text: string): boolean {
  return invisible.test(text);
}

/** Text with each invisible or control character as JSON escapes it, so that people see what is in it: `a\u200bb`. Doing it twice changes nothing. */
export function visible(text: string): string {
  return text.replace(invisibleOrControl, (found) => escapes[found] ?? found.split('').map(escaped).join(''));
}

/** The same in one line, for text from people and servers: line breaks and tabs become white space. */
export function visibleLine(text: string): string {
  return visible(text.replace(/[\t\n\v\f\r\u0085\u2028\u2029]+/g, ' '));
}

/** A name or reason in its stored form, for all later readers: in one line, without control and format characters, at most `maxLength` characters. */
export function storedLine(text: string, maxLength: number): string {
  return visibleLine(text).trim().slice(0, maxLength);
}

/** An id for people. An id with outer white space is in quotes, so that the white space can be seen. */
export function visibleId(id: string): string {
  return id === id.trim() ? visible(id) : `"${visible(id)}"`;
}

const escapes: Record<string, string> = { '\t': '\\t', '\n': '\\n', '\r': '\\r' };

function escaped(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
}
