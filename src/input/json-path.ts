import { isNamedLike } from './rivals.ts';

/**
 * The values at a path like `result.id` or `hits.hits._id`, from the outside in; a list on the way stands for each of its elements. A field with this
 * whole name comes first. `undefined` stands for each object that lacks a field of the path.
 */
export function valuesAt(value: unknown, path: string): unknown[] {
  if (isObject(value) && Object.hasOwn(value, path)) return elementsOf(value[path]);
  let values = [value];
  for (const name of path.split('.')) values = values.flatMap((one) => elementsOf(fieldOf(one, name)));
  return values;
}

/** The fields of a path. */
export function fieldsOf(record: object, path: string): readonly string[] {
  return Object.hasOwn(record, path) ? [path] : path.split('.');
}

const maxDepth = 5;

/**
 * The shortest path to a text or a number that is named like an id: `_id.$oid`, `Item.id.S`, `result.id`; null if there is none. `resource`: see
 * `isNamedLike`.
 */
export function pathToId(record: object, resource: string | null): string | null {
  let level: Found[] = [{ path: [], value: record, isId: false }];
  while (level.length > 0 && level[0]!.path.length < maxDepth) {
    level = level.flatMap((found) => fieldsIn(found, resource));
    const id = level.find(({ value, isId }) => isId && isScalar(value));
    if (id !== undefined) return id.path.join('.');
  }
  return null;
}

type Found = { path: readonly string[]; value: unknown; isId: boolean };

/**
 * The fields of an object, or of the first element of a list. What stands alone within an id is the id: MongoDB and DynamoDB name its type so. A name
 * with a dot cannot stand in a path.
 */
function fieldsIn({ path, value, isId }: Found, resource: string | null): Found[] {
  const one: unknown = Array.isArray(value) ? value[0] : value;
  const fields = isObject(one) ? Object.entries(one).filter(([name]) => !name.includes('.')) : [];
  const isNamed = (name: string) => /^_?(?:id|uuid|guid)$/i.test(name) || isNamedLike(name, resource);
  return fields.map(([name, inner]) => {
    return { path: [...path, name], value: inner, isId: isNamed(name) || (isId && fields.length === 1) };
  });
}

function fieldOf(value: unknown, name: string): unknown {
  return isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;
}

const elementsOf = (value: unknown): unknown[] => (Array.isArray(value) ? value : [value]);

function isScalar(value: unknown): boolean {
  return typeof value === 'string' || typeof value === 'number';
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
