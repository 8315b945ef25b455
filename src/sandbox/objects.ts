import { createReadStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import { parse } from 'csv-parse';
import { resource as parseResource } from '../config/parse-setting.ts';
import { ExpungeError, messageOf } from '../errors.ts';
import { type Resource, resources } from '../model/resource.ts';
import { describeFileError, isFileError } from '../system-errors.ts';

/** An object that the sandbox holds and can delete. */
export type SandboxObject = { resource: Resource; id: string };

/** The objects themselves, or the number of each to make: annotations a-000001, a-000002, …, views v-000001, … */
export type Objects = Iterable<SandboxObject> | { readonly [resource: Resource]: number | undefined };

/** The objects that the sandbox holds now. */
export type ObjectStore = ReadonlyMap<Resource, Set<string>>;

/** The id of the nth made object of a resource, counted from 1. */
export function madeId(resource: Resource, n: number): string {
  return `${resource[0]}-${String(n).padStart(6, '0')}`;
}

/** A store of the given objects; repeated ones are stored once. */
export function createStore(objects: Objects): ObjectStore {
  const store = new Map(resources.map((resource) => [resource, new Set<string>()]));
  if (isList(objects)) {
    for (const { resource, id } of objects) store.get(resource)!.add(id);
    return store;
  }
  for (const [resource, ids] of store) {
    for (let n = 1; n <= (objects[resource] ?? 0); n++) ids.add(madeId(resource, n));
  }
  return store;
}

function isList(objects: Objects): objects is Iterable<SandboxObject> {
  return Symbol.iterator in objects;
}

/** The objects in a CSV of resource,id; a header with these names is skipped. Throws USAGE with file and line. */
export async function readObjects(path: string): Promise<SandboxObject[]> {
  const objects: SandboxObject[] = [];
  const rows = parse({ bom: true, relax_column_count: true, skip_empty_lines: true, info: true });
  try {
    await pipeline(createReadStream(path), rows, async (read: AsyncIterable<CsvRow>) => {
      for await (const { record, info } of read) {
        if (objects.length > 0 || record.join() !== 'resource,id') objects.push(toObject(record, path, info.lines));
      }
    });
  } catch (error) {
    if (error instanceof ExpungeError) throw error;
    const why = isFileError(error) ? describeFileError(error) : messageOf(error);
    throw new ExpungeError('USAGE', `${path}: expected a CSV of resource,id: ${why}`, { cause: error });
  }
  return objects;
}

type CsvRow = { record: string[]; info: { lines: number } };

function toObject([resource = '', id = '', ...rest]: string[], path: string, line: number): SandboxObject {
  if (id === '' || rest.length > 0) throw new ExpungeError('USAGE', `${path}:${line}: expected resource,id`);
  try {
    return { resource: parseResource(resource), id };
  } catch (error) {
    throw new ExpungeError('USAGE', `${path}:${line}: ${messageOf(error)}`);
  }
}
