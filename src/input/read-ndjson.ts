import { messageOf } from '../errors.ts';
import { inputError } from './input-error.ts';
import type { InputOptions } from './input-options.ts';
import type { RowMaker } from './make-row.ts';
import type { Row } from './row.ts';
import { splitLines } from './split-lines.ts';

type Fields = Pick<InputOptions, 'column' | 'resourceColumn'>;

/** One JSON object or string a line; blank lines are no rows. Throws USAGE, naming the line, for what is not JSON. */
export async function* readNdjson(
  name: string,
  chunks: AsyncIterable<Buffer>,
  fields: Fields,
  make: RowMaker,
): AsyncGenerator<Row[]> {
  for await (const { first, texts } of splitLines(name, chunks)) {
    const rows: Row[] = [];
    for (const [index, text] of texts.entries()) {
      if (text.trim() !== '') rows.push(readRecord(name, first + index, text, fields, make));
    }
    yield rows;
  }
}

function readRecord(name: string, line: number, text: string, fields: Fields, make: RowMaker): Row {
  const value = parse(name, line, text);
  if (typeof value === 'string') return make.row(line, value, null);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return make.rejected(line, text, 'not_a_string');
  }
  const record = value as Record<string, unknown>;
  const kind = fields.resourceColumn && ownField(record, fields.resourceColumn);
  const id = ownField(record, fields.column);
  if (typeof id === 'string') return make.row(line, id, kind);
  if (typeof id === 'number') return fromNumber(line, id, text, fields.column, kind, make);
  return id === undefined
    ? make.rejected(line, '', 'missing_id')
    : make.rejected(line, JSON.stringify(id), 'not_a_string');
}

function parse(name: string, line: number, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw inputError(name, line, `expected one JSON object or string, got something else: ${reason(error)}`);
  }
}

/** What the parser complains about, without the piece of the line it quotes. */
function reason(error: unknown): string {
  return messageOf(error).replace(/, ?(\.\.\.)?".*$/s, '');
}

function ownField(record: Record<string, unknown>, name: string): unknown {
  return Object.hasOwn(record, name) ? record[name] : undefined;
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
