import { isNamedAs, isNamedLike, isOfResource } from './rivals.ts';

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
 * The shortest paths to a text or a number that is named like an id: `_id.$oid`, `Item.id.S`, `result.id`; empty if there is none. If there is an id
 * of the resource, only the path to that one, so that nobody is led to the id of its author.
 */
export function pathsToId(record: object, resource: string | null): string[] {
  let level: Found[] = [{ path: [], value: record, isId: false, isOfResource: false }];
  let shortest: Found[] = [];
  for (let depth = 0; depth < maxDepth; depth++) {
    level = level.flatMap((found) => fieldsIn(found, resource));
    const ids = level.filter(({ value, isId }) => isId && isScalar(value));
    const own = ids.find((id) => id.isOfResource);
    if (own !== undefined) return [own.path.join('.')];
    if (shortest.length === 0) shortest = ids;
  }
  return shortest.map(({ path }) => path.join('.'));
}

type Found = { path: readonly string[]; value: unknown; isId: boolean; isOfResource: boolean };

/**
 * The fields of an object, or of the first element of a list. What stands alone within an id is the id: MongoDB and DynamoDB name its type so. A name
 * with a dot cannot stand in a path.
 */
function fieldsIn({ path, value, ...found }: Found, resource: string | null): Found[] {
  const one: unknown = Array.isArray(value) ? value[0] : value;
  if (!isObject(one)) return [];
  const fields = Object.entries(one).filter(([name]) => !name.includes('.'));
  const isAbout = isNamedAs(path.at(-1) ?? '', resource) || isOfResource(one, resource);
  return fields.map(([name, inner]) => {
    if (found.isId && fields.length === 1) return { ...found, path: [...path, name], value: inner };
    const isLike = isNamedLike(name, resource);
    const isId = isLike || /^_?(?:id|uuid|guid)$/i.test(name);
    return { path: [...path, name], value: inner, isId, isOfResource: isLike || isAbout };
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
