import type { Row } from '../model/row.ts';
import type { InputOptions, RowMaker } from './input-options.ts';

/** Which fields of an object hold its id and its resource. */
export type Fields = Pick<InputOptions, 'column' | 'resourceColumn'>;

/** The row of one JSON value: an object with the fields, or an id as a string. `text` is the value as it is written. */
export function rowOfRecord(line: number, value: unknown, text: string, fields: Fields, make: RowMaker): Row {
  if (typeof value === 'string') return make.row(line, value, null);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return make.rejected(line, text, 'not_a_string');
  }
  const { column, resourceColumn } = fields;
  // The parser silently takes the last one, which may not be the object that is meant.
  if (isRepeated(text, column) || (resourceColumn !== null && isRepeated(text, resourceColumn))) {
    return make.rejected(line, text, 'duplicate_key');
  }
  const record = value as Record<string, unknown>;
  const kind = resourceColumn && ownField(record, resourceColumn);
  const id = ownField(record, column);
  if (typeof id === 'string') return make.row(line, id, kind);
  if (typeof id === 'number') return fromNumber(line, id, text, column, kind, make);
  return id === undefined
    ? make.rejected(line, '', 'missing_id')
    : make.rejected(line, JSON.stringify(id), 'not_a_string');
}

function ownField(record: Record<string, unknown>, name: string): unknown {
  return Object.hasOwn(record, name) ? record[name] : undefined;
}

/** Whether the outermost object has this key twice. Most records cost two searches: without a backslash, a key is written as it is. */
function isRepeated(text: string, key: string): boolean {
  const quoted = `"${key}"`;
  const first = text.indexOf(quoted);
  if (text.indexOf(quoted, first + 1) <= first && !text.includes('\\')) return false;
  return countOuterKeys(text, key, quoted) > 1;
}

/** How often the outermost object has the key. The text is known to be JSON. */
function countOuterKeys(text: string, key: string, quoted: string): number {
  let count = 0;
  let depth = 0;
  for (let at = 0; at < text.length; at++) {
    const character = text[at]!;
    if (character === '"') {
      const end = endOfString(text, at);
      if (depth === 1 && isKey(text, end) && isSame(text.slice(at, end), key, quoted)) count += 1;
      at = end - 1;
    } else if (character === '{' || character === '[') depth += 1;
    else if (character === '}' || character === ']') depth -= 1;
  }
  return count;
}

function isSame(written: string, key: string, quoted: string): boolean {
  return written.includes('\\') ? JSON.parse(written) === key : written === quoted;
}

/** Where the string that begins here has ended. */
function endOfString(text: string, start: number): number {
  let at = start + 1;
  while (text[at] !== '"') at += text[at] === '\\' ? 2 : 1;
  return at + 1;
}

/** Whether a colon follows the string that ended here. */
function isKey(text: string, end: number): boolean {
  let at = end;
  while (' \t\r\n'.includes(text[at]!)) at += 1;
  return text[at] === ':';
}

/** A number is an id only if it was written as the whole number it is: 1e3, 1.0 and those above 2^53 have lost their text. */
function fromNumber(line: number, id: number, text: string, column: string, kind: unknown, make: RowMaker): Row {
  const source = sourceOf(text, column);
  if (Number.isSafeInteger(id) && String(id) === source) return make.row(line, source, kind);
  return make.rejected(line, source, 'unsafe_number');
}

/** How the number in a field of the outermost object is written. */
function sourceOf(text: string, column: string): string {
  const sources = new Map<unknown, string>();
  const root: unknown = JSON.parse(text, function (this: unknown, key, value, context?: { source?: string }) {
    if (key === column) sources.set(this, context?.source ?? '');
    return value;
  });
  return sources.get(root) ?? '';
}
