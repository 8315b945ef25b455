import type { ReadOutcome } from './outcome.ts';
import type { Resource } from './resource.ts';

/** The name of a list read from stdin. */
export const stdinName = '(stdin)';

/** Where a row is: the index of its file in the order they were named, and its line there, counted from 1. */
export type Position = { file: number; line: number };

/** Why a row is rejected; stable codes that appear in reports. Append only: their indexes are part of what identifies a list. */
export const rejectCodes = [
  'empty_id',
  'dot_segment',
  'lone_surrogate',
  'control_character',
  'unsafe_character',
  'outer_white_space',
  'too_long',
  'spreadsheet_number',
  'not_a_string',
  'unsafe_number',
  'missing_id',
  'unknown_resource',
  'path_not_stable',
  'repeated_header',
  'duplicate_key',
  'placeholder',
] as const;
export type RejectCode = (typeof rejectCodes)[number];

/** One row of the input: either an id that can be sent, or the reason why it cannot. */
export type Row = Position & { resource: Resource | null; id: string; reject: RejectCode | null };

/** The most ids in a chunk, and the most rows in a block. */
export const chunkSize = 500;

/** Up to 500 ids of one resource, in input order: the unit of the queue. */
export type Chunk = { n: number; resource: Resource; ids: string[]; positions: Position[] };

/** A row that was settled while reading. `id` is cut to 200 characters; `first` is the first position of a duplicate's id. */
export type SettledRow = Position & {
  resource: Resource | null;
  id: string;
  outcome: ReadOutcome;
  code: RejectCode | Exclude<ReadOutcome, 'rejected'>;
  first: Position | null;
};

/** Up to 500 rows settled while reading. */
export type SettledBlock = { n: number; rows: SettledRow[] };

/** A CSV cell (RFC 4180); also quoted if it has outer white space, which some readers would trim. */
export function csvCell(text: string): string {
  return /[",\r\n]|^\s|\s$/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Text that a spreadsheet shows and does not run as a formula. It may be changed: never read it back as an id. */
export function neutralised(text: string): string {
  return /^[=+\-@\t\r\0]/.test(text) ? `'${text}` : text;
}
