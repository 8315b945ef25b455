import type { ReadOutcome } from './outcome.ts';
import { type Resource, resourcesText } from './resource.ts';
import { quoteForShell } from './shell-word.ts';

/** The name of a list read from stdin. */
export const stdinName = '(stdin)';

/** The place of a row: the index of its file in the order they were named, and its line there, counted from 1. */
export type Position = { file: number; line: number };

/**
 * Why a row is rejected: stable codes that appear in reports, their description of the row, and what lets such rows pass or repairs them; '' =
 * nothing does. Append only: the indexes are part of what identifies a list.
 */
const rejections = {
  empty_id: { reason: 'the id is missing', mend: '' },
  dot_segment: { reason: 'a part of the id is empty, "." or "..", which leads to another path', mend: '' },
  lone_surrogate: { reason: 'the id holds half of a character, which cannot be sent', mend: '' },
  control_character: {
    reason: 'the id holds a control character, such as a tab',
    mend: 'if tabs separate columns: --format csv --delimiter tab --no-header, or without --no-header if the first line names them',
  },
  unsafe_character: {
    reason: 'the id holds one of / \\ % ? # ; which proxies can take for a part of the path',
    mend: 'if ids of this API hold such characters: --allow-id-chars',
  },
  outer_white_space: {
    reason: 'the id begins or ends with white space or an invisible character',
    mend: 'if ids of this API hold spaces: --allow-id-chars',
  },
  too_long: { reason: 'the id is longer than 1 KiB', mend: '' },
  spreadsheet_number: {
    reason: 'a spreadsheet or a program changed this number, as in 1.2E+05 or 123.0',
    mend: 'export the ids as text, not through a spreadsheet; if ids of this API look like that: --allow-damaged-numbers',
  },
  not_a_string: { reason: 'the id is neither text nor a whole number', mend: '' },
  unsafe_number: {
    reason: 'this number is not written as a whole number',
    mend: 'export the ids as text, in quotes',
  },
  missing_id: {
    reason: 'the object lacks the field of the id',
    mend: 'name the field that holds the id with --column',
  },
  unknown_resource: {
    get reason() {
      return `the resource is not ${resourcesText('or')}`;
    },
    get mend() {
      return `name the column that holds ${resourcesText('or')} with --resource-column`;
    },
  },
  path_not_stable: { reason: 'a URL parser would change the path of this id', mend: '' },
  repeated_header: { reason: 'the row repeats the header, as in joined exports', mend: '' },
  duplicate_key: { reason: 'the object holds the field of the id or of the resource twice', mend: '' },
  placeholder: {
    reason: 'programs write this if there is no id, or an API can take it for all objects or for a route',
    mend: 'if ids of this API are such words or numbers: --allow-placeholders',
  },
  invisible_character: {
    reason: 'the id holds a character that cannot be seen, so it looks like another id',
    mend: 'if ids of this API hold such characters: --allow-invisible',
  },
  inner_white_space: {
    reason: 'the line holds white space: it is a sentence, a row of a table, or several ids',
    mend: 'export one id per line, or a CSV; if ids of this API hold spaces: --allow-id-chars',
  },
  outer_punctuation: {
    reason: 'the line begins or ends with a quote, a comma or a bar, which is not part of an id',
    mend: 'for ids in double quotes use --format ndjson; for rows of a CSV or a table, export one id per line; if ids of this API begin or end so: --allow-id-chars',
  },
  table_text: {
    reason: 'this is the border of a printed table',
    mend: 'export without borders (psql -At, mysql -BN); if ids of this API look like that: --allow-placeholders',
  },
  pattern_mismatch: { reason: 'the id does not match --id-pattern', mend: 'check --id-pattern and --column' },
  several_values: {
    reason: 'the id holds a comma or a star, or its line a bar: it may be several ids, or a row of a table',
    mend: 'export one id per line, or read a table with --format csv and --delimiter; if ids of this API hold such characters: --allow-id-chars',
  },
  misspelt_resource: {
    get reason() {
      return `the resource is written another way than ${resourcesText('or')}: in the singular, with a capital letter, or with white space`;
    },
    get mend() {
      return `write ${resourcesText('or')} in that column`;
    },
  },
} as const;
export type RejectCode = keyof typeof rejections;
export const rejectCodes = Object.keys(rejections) as readonly RejectCode[];

/** The description of a rejection code, as a sentence without its full stop. */
export function rejectionReason(code: RejectCode): string {
  return rejections[code].reason;
}

/** What lets rows with this code pass, or repairs them; '' if nothing does. `ids`: the ids of these rows. */
export function rejectionMend(code: RejectCode, ids: Iterable<string>): string {
  return rejections[code].mend.replace(/--allow-id-chars$/, () => allowFlag(ids));
}

/** The flag that allows the unusual characters of these ids. */
export function allowFlag(ids: Iterable<string>): string {
  const found = new Set<string>();
  for (const id of ids) for (const character of id.match(/[/\\%?#;"'`,*|<> ]/g) ?? []) found.add(character);
  return found.size === 0 ? '--allow-id-chars' : `--allow-id-chars ${quoteForShell([...found].join(''))}`;
}

/** One row of the input: either an id that can be sent, or the reason why it cannot. */
export type Row = Position & { resource: Resource | null; id: string; reject: RejectCode | null };

/** The maximum number of ids in a chunk, and of rows in a block. */
export const chunkSize = 500;

/** A chunk of up to 500 ids of one resource, in input order: the unit of the queue. */
export type Chunk = { n: number; resource: Resource; ids: string[]; positions: Position[] };

/** A row that was settled while reading. `id` is cut to 200 characters; `first` is the first position of a duplicate's id. */
export type SettledRow = Position & {
  resource: Resource | null;
  id: string;
  outcome: ReadOutcome;
  code: RejectCode | Exclude<ReadOutcome, 'rejected'>;
  first: Position | null;
};

/** A block of up to 500 rows settled while reading. */
export type SettledBlock = { n: number; rows: SettledRow[] };

/** Writes a CSV cell (RFC 4180). Also quotes a text with outer white space, which some readers would trim. */
export function csvCell(text: string): string {
  if (plainCell.test(text)) return text;
  return /[",\r\n]|^\s|\s$/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

const plainCell = /^[\w.:/-]*$/; // nearly every cell, and quicker to find

const formulaStarts = '=+-@\t\r\0';

/** Text that a spreadsheet shows and does not run as a formula. The text may be changed, so never read it back as an id. */
export function neutralised(text: string): string {
  return text !== '' && formulaStarts.includes(text[0]!) ? `'${text}` : text;
}
