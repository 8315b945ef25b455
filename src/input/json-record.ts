import { isNameOf, resources } from '../model/resource.ts';
import type { Row } from '../model/row.ts';
import { countKey, sourceOf } from '../strict-json.ts';
import { adviceToSplit } from './convert-advice.ts';
import { isNamedLike } from './header.ts';
import { inputError, shown } from './input-error.ts';
import { columnSetting, defaultColumn, type InputOptions, idColumn, type RowMaker } from './input-options.ts';
import { kindColumns } from './kind-column.ts';

/** The fields of an object that hold its id and its resource. */
export type Fields = Pick<InputOptions, 'column' | 'reads' | 'resource' | 'resourceColumn'>;

/** The place of a record, and its text. */
type Place = { name: string; line: number; text: string };

/** The row of one JSON value: an object with the fields, or an id as a string. Throws USAGE if two fields could hold the id. */
export function rowOfRecord({ name, line, text }: Place, value: unknown, fields: Fields, make: RowMaker): Row {
  if (typeof value === 'string') return make.row(line, value, undefined);
  if (typeof value === 'number') return rowOfNumber(line, value, text.trim(), undefined, make);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return make.rejected(line, text, 'not_a_string');
  }
  const record = value as Record<string, unknown>;
  if (fields.column === null) {
    refuseAmbiguousField(name, line, record, fields);
    refuseEnvelope(name, line, record, fields);
  }
  const column = idColumn(fields);
  const { resource, resourceColumn } = fields;
  // The parser silently takes the last value, which may not be the intended one.
  if (isRepeated(text, column) || (resourceColumn !== null && isRepeated(text, resourceColumn))) {
    return make.rejected(line, text, 'duplicate_key');
  }
  const kindColumn = resource === null ? resourceColumn! : kindColumns.find((known) => Object.hasOwn(record, known));
  const kind = kindColumn === undefined ? undefined : ownField(record, kindColumn);
  const id = ownField(record, column);
  if (typeof id === 'string') return make.row(line, id, kind, id, kindColumn);
  if (id === undefined) return make.rejected(line, '', 'missing_id');
  const source = sourceOf(text, column);
  if (typeof id !== 'number') return make.rejected(line, source, 'not_a_string');
  return rowOfNumber(line, id, source, { kind, kindColumn }, make);
}

type Kind = { kind: unknown; kindColumn: string | undefined };

/** Makes a row from a number. It is an id only if it was written as the whole number it is: 1e3, 1.0 and numbers above 2^53 have lost their text. */
function rowOfNumber(line: number, id: number, source: string, of: Kind | undefined, make: RowMaker): Row {
  const isExact = Number.isSafeInteger(id) && String(id) === source;
  return isExact
    ? make.row(line, source, of?.kind, source, of?.kindColumn)
    : make.rejected(line, source, 'unsafe_number');
}

function refuseAmbiguousField(name: string, line: number, record: Record<string, unknown>, fields: Fields): void {
  if (!Object.hasOwn(record, defaultColumn)) return;
  for (const field in record) {
    if (field !== defaultColumn && isNamedLike(field, fields.resource)) throw ambiguous(name, line, field, fields);
  }
}

/** Throws for a page of an API. Such an object can have an id of its own, but the intended ids are in the objects within it. */
function refuseEnvelope(name: string, line: number, record: Record<string, unknown>, fields: Fields): void {
  if (!Object.hasOwn(record, defaultColumn)) return;
  for (const field in record) {
    if (!isEnvelope(field, fields.resource) || !holdsIds(record[field])) continue;
    const message = `both the object and the value of its field ${shown(field)} have an id; nothing was sent`;
    const filter = `.[${JSON.stringify(field)}] | if type == "array" then .[] else . end`;
    const next = `for the ids of the objects themselves: ${columnSetting(fields, defaultColumn)}\nfor the ids in it: ${adviceToSplit(name, filter)}`;
    throw inputError(name, line, message, next);
  }
}

/** Whether APIs use this name for the objects of a page, or it is a name of the resource. */
function isEnvelope(field: string, resource: Fields['resource']): boolean {
  const kinds = resource === null ? resources : [resource];
  return envelopes.has(field.toLowerCase()) || kinds.some((kind) => isNameOf(field, kind));
}

const envelopes = new Set(['data', 'items', 'results', 'records', 'hits']);

function holdsIds(value: unknown): boolean {
  const first: unknown = Array.isArray(value) ? value[0] : value;
  return typeof first === 'object' && first !== null && Object.hasOwn(first, defaultColumn);
}

/** The error for a list in which `id` and another column could hold the ids. */
export function ambiguous(name: string, line: number, rival: string, fields: Pick<Fields, 'reads'>): Error {
  const message = `both "${defaultColumn}" and ${shown(rival)} could hold the ids; nothing was sent`;
  const next = `name the right one: ${columnSetting(fields, rival)} or ${columnSetting(fields, defaultColumn)}`;
  return inputError(name, line, message, next);
}

function ownField(record: Record<string, unknown>, name: string): unknown {
  return Object.hasOwn(record, name) ? record[name] : undefined;
}

/**
 * Whether the outermost object has this key twice. Most records cost two searches, because a key in a text without a backslash is written unchanged.
 */
function isRepeated(text: string, key: string): boolean {
  const quoted = `"${key}"`;
  const first = text.indexOf(quoted);
  if (text.indexOf(quoted, first + 1) <= first && !text.includes('\\')) return false;
  return countKey(text, key) > 1;
}
