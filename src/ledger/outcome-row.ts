import type { Outcome, Resource } from '../model/outcome.ts';
import type { Chunk, Position, SettledRow } from '../model/row.ts';
import { isSettled } from './cell.ts';
import { type LedgerChunk, settledAtOf } from './cells.ts';
import { fateIn } from './fate-in-run.ts';
import type { Run } from './run.ts';

/** One row of the input and what happened to it, as reports show it. */
export type OutcomeRow = {
  file: string; // as named when the run was made; the same name can stand for two files
  line: number;
  resource: Resource | null;
  id: string;
  outcome: Outcome | 'pending';
  status: number | null;
  attempts: number;
  settledAt: string; // ISO time by which the id was settled, to the second; '' = not yet, or settled while reading
  code: string;
  excerpt: string; // what the server said, or where a duplicate stood first
};

/** Rows and where each of them stands, in input order. */
export type Page = { positions: Position[]; rows: OutcomeRow[] };

/** The rows of a chunk. `excerpts` runs parallel to its ids. */
export function rowsOfChunk(
  run: Run,
  chunk: Chunk,
  ledger: Pick<LedgerChunk, 'times' | 'cells'>,
  excerpts: (string | null)[],
): Page {
  const fate = fateIn(run);
  const rows = chunk.ids.map((id, i): OutcomeRow => {
    const { outcome, status, attempts, code } = fate(ledger.cells[i]!);
    const { file, line } = chunk.positions[i]!;
    const settledAt =
      outcome === 'pending' ? '' : timeText(isSettled(ledger.cells[i]!) ? settledAtOf(ledger, i) : run.endedAt);
    const excerpt = excerpts[i] ?? '';
    return {
      file: run.files[file]!,
      line,
      resource: chunk.resource,
      id,
      outcome,
      status,
      attempts,
      settledAt,
      code,
      excerpt,
    };
  });
  return { positions: chunk.positions, rows };
}

function timeText(ms: number): string {
  return ms > 0 ? new Date(ms).toISOString() : '';
}

/** The rows of a block. They were never sent. */
export function rowsOfBlock(run: Run, settled: SettledRow[]): Page {
  const rows = settled.map((row): OutcomeRow => {
    const { line, resource, outcome, code, first } = row;
    const excerpt = first === null ? '' : `first at ${run.files[first.file]}:${first.line}`;
    const file = run.files[row.file]!;
    return { file, line, resource, id: shownId(row), outcome, status: null, attempts: 0, settledAt: '', code, excerpt };
  });
  return { positions: settled, rows };
}

const cutFrom = 199; // rows of blocks hold at most 200 characters, 199 if the cut met a surrogate pair
const notAnId = new Set<string>([
  'lone_surrogate',
  'not_a_string',
  'unsafe_number',
  'repeated_header',
  'duplicate_key',
]);

/**
 * A report is input again, and text that is not the id of its row could name another object there. It gets a tab at its
 * end: no option lets an id with a control character through.
 */
function shownId({ id, code }: SettledRow): string {
  if (id.length >= cutFrom) return `${id}…\t`;
  return notAnId.has(code) ? `${id}\t` : id;
}
