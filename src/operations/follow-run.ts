import { ExpungeError } from '../errors.ts';
import { isFinalized, type Run, readRunAgain } from '../ledger/run.ts';
import { toExitCode, toSummary } from '../ledger/summary.ts';
import { tallyIfFinalized } from '../ledger/tally.ts';
import type { RedisClient } from '../redis/client.ts';
import { decodeCursor, type FollowCursor, firstCursor } from '../report/follow-cursor.ts';
import { type FollowPart, followOutcomes } from '../report/follow-outcomes.ts';
import { reportText, type Sink } from '../report/report.ts';

/** Throws USAGE for a run that has no rows yet. */
export function requireWrittenList({ id, state, command }: Run): void {
  if (state !== 'preparing') return;
  throw new ExpungeError('USAGE', `run ${id} can't be followed: its list was not written completely`, {
    next: `run its command again: ${command}`,
  });
}

/** The cursor in a text that `--follow` printed; the cursor of the beginning without a text. Throws USAGE for any other text. */
export function parseCursor({ id, chunks }: Run, text: string | undefined): FollowCursor {
  return text === undefined ? firstCursor(chunks) : decodeCursor(id, chunks, text);
}

/** Result of a look at a run: all rows of an ended run are written, more will come, or the reader has gone. */
export type Found = 'all' | 'more' | 'closed';

/** Writes the new rows of a run since the cursor, and the summary once it has ended. Only reads. */
export async function writeNewRows(
  redis: RedisClient,
  id: string,
  cursor: FollowCursor,
  written: WrittenRows,
): Promise<Found> {
  const run = await tallyIfFinalized(redis, await readRunAgain(redis, id));
  for await (const part of followOutcomes(redis, run, cursor)) if (!(await written.add(part))) return 'closed';
  if (!isFinalized(run.state)) return 'more';
  return (await written.end(run)) ? 'all' : 'closed';
}

/** Writes rows to a reader, line by line, and knows from where another process can continue. */
export class WrittenRows {
  readonly #sink: Sink;
  readonly #run: string;
  readonly #stop: AbortSignal;
  #cursor: string | null;
  #rows = 0;

  constructor(sink: Sink, run: string, cursor: string | null, stop: AbortSignal) {
    this.#sink = sink;
    this.#run = run;
    this.#cursor = cursor;
    this.#stop = stop;
  }

  /** The cursor after everything that was written; null = nothing was written. */
  get resumeCursor(): string | null {
    return this.#cursor === null || this.#rows === 0 ? this.#cursor : `${this.#cursor}+${this.#rows}`;
  }

  /** Writes a part after its cursor. Returns false if it is to stop, or the reader has gone. */
  async add({ cursor, rows, isCorrection }: FollowPart): Promise<boolean> {
    if (this.#stop.aborted) return false;
    const text = reportText(rows, { format: 'ndjson', spreadsheetSafe: false });
    const lines = isCorrection ? text.replaceAll(/\}$/gm, ',"correction":true}') : text;
    if (!(await this.#sink(`${lineOf('cursor', { run: this.#run, cursor })}${lines}`))) return false;
    this.#cursor = cursor;
    this.#rows = rows.length;
    return !this.#stop.aborted;
  }

  /** Writes whole lines that another process has written in this form. */
  async copy(lines: readonly string[]): Promise<boolean> {
    if (this.#stop.aborted || !(await this.#sink(`${lines.join('\n')}\n`))) return false;
    for (const line of lines) {
      const isCursor = isLineType('cursor', line);
      if (isCursor) this.#cursor = JSON.parse(line).cursor;
      this.#rows = isCursor ? 0 : this.#rows + 1;
    }
    return true;
  }

  /** Writes the summary of the finalized run, the last line. */
  async end(run: Run): Promise<boolean> {
    return this.#sink(`${JSON.stringify(toSummary(run, toExitCode(run), Date.now()))}\n`);
  }

  /** Writes why there are no more rows as the last line, for a reader that copies them. */
  async fail(detail: string): Promise<boolean> {
    return this.#sink(lineOf('problem', { detail }));
  }
}

function lineOf(type: 'cursor' | 'problem', facts: object): string {
  return `${JSON.stringify({ v: 1, type, ...facts })}\n`;
}

/** Whether a line is of this type; rows have no type. */
export function isLineType(type: 'cursor' | 'problem' | 'summary', line: string): boolean {
  return line.startsWith(`{"v":1,"type":"${type}"`);
}
