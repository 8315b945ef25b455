import type { Config } from '../config/settings.ts';
import { count } from '../format.ts';
import { anyResource } from '../model/resource.ts';
import { allowFlag, rejectionReason } from '../model/row.ts';
import { inputError, shown } from './input-error.ts';
import { formatByName, type InputOptions } from './input-options.ts';
import { openInputs } from './open-inputs.ts';
import { readRows } from './read-rows.ts';
import type { Spool } from './spool.ts';

/** A file of ids that are never deleted, and the column of a CSV or the field of JSON that holds them; null = as in the list. */
export type ProtectFile = { path: string; column: string | null };

/** The file of protected ids that these settings name; null if they name none. */
export function toProtectFile(given: Pick<Config, 'protect' | 'protectColumn'>): ProtectFile | null {
  return given.protect === undefined ? null : { path: given.protect, column: given.protectColumn ?? null };
}

/**
 * Reads the ids of a `--protect` file, of either resource: one per line, or CSV or JSON by its name. It is stricter than the input, since an id that
 * is misread protects nothing. Throws USAGE for any row that is not a clean id, for a last line without its newline, and for a file without ids.
 */
export async function* readProtected({ path, column }: ProtectFile, options: InputOptions): AsyncGenerator<string[]> {
  if (path === '-')
    throw inputError(path, null, 'protected ids come from a file, stdin is for the list', 'write them to a file first');
  const [file] = await openInputs([path]);
  const format = formatByName(path) ?? 'lines';
  const reading: InputOptions = {
    ...options,
    format,
    resource: anyResource,
    resourceColumn: null,
    column: column ?? options.column,
    reads: 'protected',
    allowOpenEnd: false,
    noHeader: column === null && options.noHeader,
  };
  let read = 0;
  for await (const rows of readRows([{ ...file!, isUnattended: true }], reading)) {
    const ids = rows.filter((row) => row.reject !== 'repeated_header');
    for (const { line, id, reject } of ids) {
      if (reject !== null) throw unusable(path, line, id, rejectionReason(reject));
      if (/(?:…|\.{3})$/.test(id)) throw unusable(path, line, id, 'it was cut for people to read');
    }
    read += ids.length;
    yield ids.map((row) => row.id);
  }
  if (read === 0) throw inputError(path, null, 'expected at least one id to protect, got none', checkFile);
}

function unusable(path: string, line: number, id: string, reason: string): Error {
  const message = `${shown(id)} would protect no id: ${reason}; nothing was sent`;
  return inputError(path, line, message, `${fixLine}: ${allowFlag([id])}`);
}

const fixLine =
  'write one id per line and nothing else, or name the file .csv if it has a header, and its column in EXPUNGE_PROTECT_COLUMN; if ids hold such characters';
const checkFile = 'see why the file is empty, or omit --protect if nothing is to be protected';

/**
 * Why the protected ids seem to be meant for another list, or are written in another way; null if they don't seem so, or if there are none. `expected`:
 * whether each of them is expected in the list, as in a file that was made for it, or only some.
 */
export function explainUnmatched(facts: ProtectFacts, expected: 'each' | 'some'): string | null {
  const { protectedList, protected: matched, unmatched, rows, nearMiss, limited } = facts;
  if (nearMiss !== null) return explainNearMiss(nearMiss);
  if (protectedList === null || rows === 0) return null;
  const all = `the ${count(protectedList.ids)} protected ids`;
  if (matched === 0) return `none of ${all} is in the list`;
  if (expected === 'some' || unmatched === 0 || limited) return null;
  return `${count(unmatched)} of ${all} ${unmatched === 1 ? 'matches' : 'match'} no row of the list`;
}

/** Explains a near miss. `found`: the `nearMiss` of a spool. */
export function explainNearMiss(found: string): string {
  return `${found}, so it protects nothing`;
}

/** What a list says about its protected ids. */
export type ProtectFacts = Pick<Spool, 'protectedList' | 'protected' | 'unmatched' | 'rows' | 'nearMiss' | 'limited'>;
