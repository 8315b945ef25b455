import { createReadStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import { parse } from 'csv-parse';
import { resource as parseResource } from '../config/parse-setting.ts';
import { ExpungeError, messageOf } from '../errors.ts';
import { fileWords, isFileTrouble } from '../system-words.ts';
import type { SandboxObject } from './objects.ts';

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
    const why = isFileTrouble(error) ? fileWords(error) : messageOf(error);
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
