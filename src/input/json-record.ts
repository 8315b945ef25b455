import type { Row } from '../model/row.ts';
import { hasKeyTwice } from '../strict-json.ts';
import { ArraySplitter } from './array-splitter.ts';
import { inputError, shown } from './input-error.ts';
import { columnSetting, defaultColumn, type InputOptions, idColumn, type RowMaker } from './input-options.ts';
import { fieldsOf, isObject, pathsToId, valuesAt } from './json-path.ts';
import { kindColumns } from './kind-column.ts';
import { findRival, isNamedAs, isOfResource } from './rivals.ts';

/** The fields of an object that hold its id and its resource. */
export type Fields = Pick<InputOptions, 'column' | 'comments' | 'reads' | 'resource' | 'resourceColumn'>;

/** The place of a record, and its text. */
type Place = { name: string; line: number; text: string };

/**
 * The rows of one JSON value: an object with the fields, or an id as a string or a number. A list of objects stands for its objects. `isFirst`: no
 * object came before. Throws USAGE if two fields could hold the id, and for a first object whose id lies deeper in it.
 */
export function rowsOfRecord(place: Place, value: unknown, fields: Fields, make: RowMaker, isFirst: boolean): Row[] {
  const { name, line, text } = place;
  if (typeof value === 'string') return [make.row(line, value, undefined)];
  if (typeof value === 'number') return [rowOfNumber(line, text.trim(), undefined, make)];
  if (Array.isArray(value) && value.length > 0 && value.every(isObject)) {
    const texts = [...new ArraySplitter(name).split(text)]; // as written: with each key, and numbers that lose digits
    return value.flatMap((one, n) => {
      return rowsOfRecord({ ...place, text: texts[n]!.trim() }, one, fields, make, isFirst && n === 0);
    });
  }
  if (!isObject(value)) return [make.rejected(line, text, 'not_a_string')];
  const { rival, kindColumn: ownKind } = meaningOf(value, fields);
  if (fields.column === null) {
    refuseAmbiguousField(name, line, value, rival, fields);
    if (isFirst) refuseDeepId(name, line, value, fields);
  }
  const column = idColumn(fields);
  const { resource, resourceColumn } = fields;
  const names = fieldsOf(value, column);
  // The parser silently takes the last value, which may not be the intended one.
  if (isRepeated(text, names) || (resourceColumn !== null && isRepeated(text, [resourceColumn])))
    return [make.rejected(line, text, 'duplicate_key')];
  const kindColumn = resource === null ? resourceColumn! : ownKind;
  const kind = kindColumn === undefined ? undefined : ownField(value, kindColumn);
  const of = { kind, kindColumn };
  const own = ownField(value, column);
  if (typeof own === 'string') return [make.row(line, own, kind, own, kindColumn)]; // as in most records
  const ids = fields.column === null ? [own] : valuesAt(value, column);
  const hasNumber = ids.some((id) => typeof id === 'number');
  return (hasNumber ? withSources(ids, text, names, column) : ids).map((id) => {
    if (typeof id === 'string') return make.row(line, id, kind, id, kindColumn);
    if (id instanceof NumberSource) return rowOfNumber(line, id.source, of, make);
    return id === undefined ? make.rejected(line, '', 'missing_id') : make.rejected(line, text, 'not_a_string');
  });
}

type Kind = { kind: unknown; kindColumn: string | undefined };

/** A number as it is written. */
class NumberSource {
  readonly source: string;

  constructor(source: string) {
    this.source = source;
  }
}

/** The same ids with numbers as they are written. Most records have one, behind a key that occurs once. */
function withSources(ids: unknown[], text: string, names: readonly string[], column: string): unknown[] {
  const quoted = `"${names.at(-1)}"`;
  const at = text.indexOf(quoted);
  if (ids.length === 1 && at !== -1 && text.indexOf(quoted, at + 1) === -1) {
    number.lastIndex = at + quoted.length;
    const source = number.exec(text)?.[1];
    if (source !== undefined && Number(source) === ids[0]) return [new NumberSource(source)];
  }
  return valuesAt(parseWithSources(text), column);
}

const number = /\s*:\s*(-?\d[\d.eE+-]*)\s*[,}\]]/y;

function parseWithSources(text: string): unknown {
  const revive = (_: string, value: unknown, { source }: { source: string }) =>
    typeof value === 'number' ? new NumberSource(source) : value;
  return JSON.parse(text, revive as Parameters<typeof JSON.parse>[1]);
}

/** Makes a row from a number. It is an id only if it was written as the whole number it is: 1e3 and 1.0 have lost their text. */
function rowOfNumber(line: number, source: string, of: Kind | undefined, make: RowMaker): Row {
  if (!/^(?:0|-?[1-9]\d*)$/.test(source)) return make.rejected(line, source, 'unsafe_number');
  if (!Number.isSafeInteger(Number(source))) make.bareNumber(line, source);
  return make.row(line, source, of?.kind, source, of?.kindColumn);
}

/** Throws for an object without an id of its own that has one deeper in it. */
function refuseDeepId(name: string, line: number, record: Record<string, unknown>, fields: Fields): void {
  const own = ownField(record, defaultColumn);
  if (own !== undefined && (typeof own !== 'object' || own === null)) return;
  const paths = pathsToId(record, fields.resource).slice(0, 3);
  if (paths.length === 0 || paths[0] === defaultColumn) return;
  const message = `the field ${shown(defaultColumn)} ${own === undefined ? 'is missing' : 'is no text'}; nothing was sent`;
  const named = paths.map((path) => columnSetting(fields, path)).join(' or ');
  throw inputError(name, line, message, `name the field of the ids, as in ${named}`);
}

/** Throws if another field than `id` could hold the ids, or an object within the record, as in a page of an API or an entry of an audit log. */
function refuseAmbiguousField(
  name: string,
  line: number,
  record: Record<string, unknown>,
  likeId: string | undefined,
  fields: Fields,
): void {
  if (!Object.hasOwn(record, defaultColumn)) return;
  const rival = likeId ?? objectWithId(record, fields.resource);
  if (rival !== undefined) throw ambiguous(name, line, rival, fields);
}

/** What the names of the fields mean, whatever the record holds: one that is named like the id, and one that names the kind of the id. */
type Meaning = {
  names: readonly string[];
  resource: Fields['resource'];
  rival?: string | undefined;
  kindColumn?: string | undefined;
};

let known: Meaning = { names: [], resource: null }; // most records have the same fields as the one before

function meaningOf(record: Record<string, unknown>, { resource }: Fields): Meaning {
  if (resource === known.resource && hasFields(record, known.names)) return known;
  const names = Object.keys(record);
  const kindColumn = kindColumns.find((column) => Object.hasOwn(record, column));
  known = { names, resource, rival: findRival(names, resource), kindColumn };
  return known;
}

/** Whether these are the names of its fields, in their order. */
function hasFields(record: Record<string, unknown>, names: readonly string[]): boolean {
  let n = 0;
  for (const name in record) if (name !== names[n++]) return false;
  return n === names.length;
}

/**
 * The path to the id of an object within the record that may be the one that is meant. It can lie deeper, as in the events that a webhook gets, unless
 * the record itself says that it is of the resource: then it has relations to others.
 */
function objectWithId(record: Record<string, unknown>, resource: Fields['resource'], depth = 0): string | undefined {
  let isDeep: boolean | null = null; // most records hold no other object
  for (const field in record) {
    const value = record[field];
    const one: unknown = Array.isArray(value) ? value[0] : value;
    if (!isObject(one)) continue;
    const isNamed = (depth === 0 && envelopes.has(field.toLowerCase())) || isNamedAs(field, resource);
    if (Object.hasOwn(one, defaultColumn) && (isNamed || isOfResource(one, resource)))
      return `${field}.${defaultColumn}`;
    isDeep ??= depth < maxDepth && (depth > 0 || !isOfResource(record, resource));
    const deeper = isDeep ? objectWithId(one, resource, depth + 1) : undefined;
    if (deeper !== undefined) return `${field}.${deeper}`;
  }
  return undefined;
}

const maxDepth = 3;

/** What APIs call the objects of a page. */
const envelopes = new Set(['data', 'items', 'results', 'records', 'hits']);

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
 * Whether one of these keys stands twice in its object. Most records cost two searches for each, because a key in a text without a backslash is
 * written unchanged.
 */
function isRepeated(text: string, names: readonly string[]): boolean {
  let isSure = !text.includes('\\');
  for (const name of names) isSure &&= isOnce(text, `"${name}"`);
  return !isSure && hasKeyTwice(text, names, names.length === 1 ? 'outermost' : 'any');
}

function isOnce(text: string, quoted: string): boolean {
  const first = text.indexOf(quoted);
  return text.indexOf(quoted, first + 1) <= first;
}
