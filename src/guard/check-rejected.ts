import { ExpungeError } from '../errors.ts';
import { count } from '../format.ts';
import type { Spool } from '../input/spool.ts';
import type { RejectCode } from '../model/row.ts';

/** Fewer bad rows say nothing about a list. */
const leastRows = 10;

type Facts = Pick<Spool, 'rows' | 'rejectedByCode'>;

/** The code for which more than half of a list was rejected, or null. */
export function mostlyRejectedAs({ rows, rejectedByCode }: Facts): RejectCode | null {
  const found = Object.entries(rejectedByCode).find(([, bad]) => bad >= leastRows && 2 * bad > rows);
  return found === undefined ? null : (found[0] as RejectCode);
}

/**
 * What refuses such a list: the wrong column was read, or another file than somebody meant, and what is left of it may be as wrong.
 * `examples` are a few of its bad ids.
 */
export function mostlyRejected(list: Facts, code: RejectCode, examples: string[], rejectsFile: string): ExpungeError {
  const bad = `${count(list.rejectedByCode[code]!)} of ${count(list.rows)} rows are rejected as ${code}`;
  const like = examples.map((id) => JSON.stringify(id)).join(', ');
  const next = [`see if it is the file and the column that was meant; all are in ${rejectsFile}`, advice[code] ?? ''];
  return new ExpungeError('USAGE', `${bad}, like ${like}; nothing was sent`, {
    next: [...next, 'to go on with the other rows: --expect-rejected'].filter(Boolean).join('\n'),
  });
}

const advice: Partial<Record<RejectCode, string>> = {
  unsafe_character:
    'for the rows of a CSV use --format csv and --delimiter; if ids of this API hold such characters: --allow-id-chars',
  placeholder: 'if ids of this API are such words: --allow-placeholders',
  missing_id: 'name the field that holds the id with --column',
  unknown_resource: 'name the column that holds annotations or views with --resource-column',
  spreadsheet_number: 'export the ids as text, not through a spreadsheet',
};
