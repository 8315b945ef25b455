import { ExpungeError, exitCodes } from '../errors.ts';
import { decodeCursor, type FollowCursor, firstCursor } from '../ledger/follow-cursor.ts';
import { type FollowPart, followOutcomes, readProgress } from '../ledger/follow-outcomes.ts';
import { reportText, type Sink } from '../ledger/report.ts';
import { isSealed, type Run, readRunAgain } from '../ledger/run.ts';
import { exitOf, summaryOf } from '../ledger/summary.ts';
import { tallyIfSealed } from '../ledger/tally.ts';
import type { RedisClient } from '../redis/client.ts';
import { describeRedisError, isRedisError } from '../redis/errors.ts';
import { sleepUntilAborted } from '../wait.ts';
import type { Invocation } from './command.ts';
import { listenForInterrupts } from './interrupts.ts';
import { sinkOf } from './report-sink.ts';
import { type Session, sayOn } from './session.ts';

const pollMs = 1_000;

/** Throws USAGE for what a report that grows cannot be, and for --from without --follow. */
export function refuseBesideFollow({ options }: Invocation): void {
  if (!options.follow) {
    if (options.from === undefined) return;
    throw new ExpungeError('USAGE', '--from goes on with a report that is followed', { next: 'add --follow' });
  }
  const others = ['output', 'only', 'join', 'verify', 'certificate', 'spreadsheetSafe', 'json'];
  const other = others.find((name) => options[name] !== undefined && options[name] !== false);
  const isOther = options.format !== undefined && options.format !== 'ndjson';
  if (other === undefined && !isOther) return;
  const named = isOther
    ? `--format ${options.format}`
    : `--${other === 'spreadsheetSafe' ? 'spreadsheet-safe' : other}`;
  throw new ExpungeError(
    'USAGE',
    `--follow writes all rows as NDJSON to stdout; ${named} is for a report of one moment`,
    {
      next: `omit ${named}; to choose rows: … --follow | jq`,
    },
  );
}

/**
 * Writes the rows of a run as their outcomes become known, until it ends; then its summary. Returns 0, or 130 or 143 after a signal, when it says
 * how to go on. A Redis that does not answer is asked again. Only reads, so it can be cut anywhere, repeated, and done twice at once.
 */
export async function followReport(invocation: Invocation, session: Session, run: Run): Promise<number> {
  refuseUnwritten(run);
  const { options, stdout, stderr, outputClosed } = invocation;
  const text = options.from as string | undefined;
  const cursor = text === undefined ? firstCursor(run.chunks) : decodeCursor(run.id, run.chunks, text);
  const interrupts = listenForInterrupts(invocation, () => {});
  const stop = AbortSignal.any([interrupts.signal, outputClosed]);
  const say = sayOn(stderr);
  const written = new WrittenRows(sinkOf(stdout, run.id), run.id, text ?? null, stop);
  try {
    const isWhole = await writeUntilSealed(session.redis, run, cursor, { written, stop, say });
    if (isWhole || !interrupts.signal.aborted) return exitCodes.OK.exit;
    say(`Go on: expunge report ${run.id} --follow${written.goOn === null ? '' : ` --from ${written.goOn}`}`);
    return interrupts.exit()!;
  } finally {
    interrupts.dispose();
  }
}

function refuseUnwritten({ id, state, command }: Run): void {
  if (state !== 'preparing') return;
  throw new ExpungeError('USAGE', `run ${id} can't be followed: its list was not written completely`, {
    next: `run its command again: ${command}`,
  });
}

type Deps = { written: WrittenRows; stop: AbortSignal; say: (line: string) => void };

/** Whether all was written: false if `stop` came first, or nobody reads any more. */
async function writeUntilSealed(redis: RedisClient, { id }: Run, cursor: FollowCursor, deps: Deps): Promise<boolean> {
  const { written, stop, say } = deps;
  let seen = '';
  let isAway = false;
  while (!stop.aborted) {
    try {
      const progress = await readProgress(redis, id);
      if (progress !== seen) {
        const run = await tallyIfSealed(redis, await readRunAgain(redis, id));
        for await (const part of followOutcomes(redis, run, cursor)) if (!(await written.add(part))) return false;
        if (isSealed(run.state)) return written.end(run);
        seen = progress;
      }
      isAway = false;
    } catch (error) {
      if (!isRedisError(error)) throw error;
      if (!isAway) say(`warning: ${describeRedisError(error)}; asking again`);
      isAway = true;
    }
    await sleepUntilAborted(pollMs, stop);
  }
  return false;
}

/** What was written to stdout, line by line, and from where another process can go on. */
class WrittenRows {
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

  /** The cursor behind all that was written; null = nothing was. */
  get goOn(): string | null {
    return this.#cursor === null || this.#rows === 0 ? this.#cursor : `${this.#cursor}+${this.#rows}`;
  }

  /** Writes a part behind its cursor. False if it is to stop, or nobody reads any more. */
  async add({ cursor, rows, isCorrection }: FollowPart): Promise<boolean> {
    if (this.#stop.aborted) return false;
    const text = reportText(rows, { format: 'ndjson', spreadsheetSafe: false });
    const lines = isCorrection ? text.replaceAll(/\}$/gm, ',"correction":true}') : text;
    if (!(await this.#sink(`${JSON.stringify({ v: 1, type: 'cursor', run: this.#run, cursor })}\n${lines}`)))
      return false;
    this.#cursor = cursor;
    this.#rows = rows.length;
    return !this.#stop.aborted;
  }

  /** Writes the summary of the sealed run, the last line. */
  async end(run: Run): Promise<boolean> {
    return this.#sink(`${JSON.stringify(summaryOf(run, exitOf(run), Date.now()))}\n`);
  }
}
