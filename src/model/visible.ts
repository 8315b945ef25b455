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

/** Text with each invisible or control character as its code, so that people see what is there: `a\u{200b}b`. */
export function visible(text: string): string {
  return text.replace(invisibleOrControl, (character) => escapes[character] ?? `\\u{${hexOf(character)}}`);
}

/** An id for people; one with white space around it is in quotes, or nobody would see it. */
export function visibleId(id: string): string {
  return id === id.trim() ? visible(id) : `"${visible(id)}"`;
}

const escapes: Record<string, string> = { '\t': '\\t', '\n': '\\n', '\r': '\\r' };

function hexOf(character: string): string {
  return character.codePointAt(0)!.toString(16).padStart(4, '0');
}
