import { suggest } from '../suggest.ts';
import { inputError, shown } from './input-error.ts';
import type { InputOptions } from './input-options.ts';

/** Where the columns we need stand in a row, and how many cells each row has. */
export type Columns = { id: number; resource: number; cells: number };

/** Finds the columns in a header. Throws USAGE for one that is missing, and for names that stand twice. */
export function findColumns(name: string, line: number, header: string[], options: InputOptions): Columns {
  const twice = header.find((column, index) => header.indexOf(column) !== index);
  if (twice !== undefined) throw inputError(name, line, `two columns are named ${shown(twice)}`, 'rename one of them');
  const find = (column: string) => {
    const index = header.indexOf(column);
    if (index === -1) throw missing(name, line, header, column);
    return index;
  };
  const { column, resourceColumn } = options;
  return { id: find(column), resource: resourceColumn === null ? -1 : find(resourceColumn), cells: header.length };
}

function missing(name: string, line: number, header: string[], column: string): Error {
  const columns = header.slice(0, 20).map(shown).join(', ');
  const message = `no column ${shown(column)} in the header, which has: ${columns}.${suggest(column, header)}`;
  return inputError(name, line, message, wayOut(header, column));
}

function wayOut(header: string[], column: string): string {
  const delimiter = delimiterThatFits(header, column);
  if (delimiter) return `try --delimiter ${delimiter}`;
  if (column === 'id' && header.includes('id_safe')) {
    return 'id_safe holds ids changed for spreadsheets: use a report made without --spreadsheet-safe';
  }
  return 'name the column with --column, or add --no-header if the first line holds an id already';
}

function delimiterThatFits(header: string[], column: string): string | undefined {
  if (header.length > 1) return undefined;
  return delimiters.find(([character]) => header[0]?.split(character).includes(column))?.[1];
}

/** What people separate columns with, and how they would type it. */
export const delimiters = [
  [';', "';'"],
  ['\t', 'tab'],
  [',', ','],
  ['|', "'|'"],
] as const;
