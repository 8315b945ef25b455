// The one place that decides which characters cannot be seen, and how people are shown them.

/**
 * Characters that leave no mark on a screen or change the order of others: zero-width and direction marks, byte order marks, fillers, white
 * space other than the plain space. Two ids that differ only in them look alike.
 */
const invisible = /[\p{Default_Ignorable_Code_Point}\p{Cf}\p{Zl}\p{Zp}\u2800]|(?! )\p{Zs}/u;
const invisibleOrControl = new RegExp(`${invisible.source}|\\p{Cc}|\\p{Surrogate}`, 'gu');

/** Whether a text holds a character that cannot be seen. */
export function hasInvisible(text: string): boolean {
  return invisible.test(text);
}

/** Text with each invisible or control character as JSON escapes it, so that people see what is there: `a\u200bb`. Doing it twice changes nothing. */
export function visible(text: string): string {
  return text.replace(invisibleOrControl, (found) => escapes[found] ?? found.split('').map(escaped).join(''));
}

/** The same in one line: line breaks and tabs are white space. For what people and servers wrote. */
export function visibleLine(text: string): string {
  return visible(text.replace(/[\t\n\v\f\r\u0085\u2028\u2029]+/g, ' '));
}

/** A name or reason as it is stored, for all who read it later: in one line, without control and format characters, and so many characters at most. */
export function storedLine(text: string, most: number): string {
  return visibleLine(text).trim().slice(0, most);
}

/** An id for people; one with white space around it is in quotes, or nobody would see it. */
export function visibleId(id: string): string {
  return id === id.trim() ? visible(id) : `"${visible(id)}"`;
}

const escapes: Record<string, string> = { '\t': '\\t', '\n': '\\n', '\r': '\\r' };

function escaped(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
}
