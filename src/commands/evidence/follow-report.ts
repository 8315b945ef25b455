import { ExpungeError, exitCodes } from '../../errors.ts';
import type { Run } from '../../ledger/run.ts';
import { type Found, parseCursor, requireWrittenList, WrittenRows } from '../../operations/follow-run.ts';
import type { RecordOperations } from '../../operations/operations.ts';
import { sleepUntilAborted } from '../../wait.ts';
import type { Invocation } from '../command.ts';
import { listenForInterrupts } from '../interrupts.ts';
import { lineWriter } from '../session.ts';
import { toSink } from './report-sink.ts';

const pollMs = 1_000;

/** Throws USAGE for options that a growing report cannot have, and for --from without --follow. */
export function refuseFollowConflicts({ options }: Invocation): void {
  if (!options.follow) {
    if (options.from === undefined) return;
    throw new ExpungeError('USAGE', '--from needs --follow: it continues a report that was followed', {
      next: 'add --follow',
    });
  }
  const others = ['output', 'only', 'join', 'verify', 'certificate', 'spreadsheetSafe', 'json'] as const;
  const other = others.find((name) => options[name] !== undefined && options[name] !== false);
  const isOther = options.format !== undefined && options.format !== 'ndjson';
  if (other === undefined && !isOther) return;
  const named = isOther
    ? `--format ${options.format}`
    : `--${other === 'spreadsheetSafe' ? 'spreadsheet-safe' : other}`;
  throw new ExpungeError('USAGE', `--follow cannot be combined with ${named}: it writes all rows as NDJSON to stdout`, {
    next: `omit ${named}; to choose rows: … --follow | jq`,
  });
}

/** `report --follow`: polls for new rows. */
export async function followReport(invocation: Invocation, records: RecordOperations, run: Run): Promise<number> {
  requireWrittenList(run);
  const cursor = parseCursor(run, invocation.options.from);
  return follow(invocation, run, records.follow(run, cursor), records.retryReason);
}

/**
 * Writes the rows of a run as their outcomes become known, until it ends; then its summary. Returns 0, or 130 or 143 after a signal, with the command
 * that continues. If a request fails, `retryReason` returns the reason to retry, or null. Only reads, so it can be cut off anywhere, repeated, and
 * run twice at once.
 */
async function follow(
  { options, toType, stdout, stderr, outputClosed, ...context }: Invocation,
  { id }: Run,
  look: (written: WrittenRows, stop: AbortSignal) => Promise<Found>,
  retryReason: (error: unknown) => string | null,
): Promise<number> {
  const interrupts = listenForInterrupts(context, () => {});
  const stop = AbortSignal.any([interrupts.signal, outputClosed]);
  const say = lineWriter(stderr);
  const written = new WrittenRows(toSink(stdout, id), id, options.from ?? null, stop);
  const sayHowToResume = () =>
    say(
      `Continue: ${toType('report', id, '--follow', ...(written.resumeCursor === null ? [] : ['--from', written.resumeCursor]))}`,
    );
  try {
    const isWhole = await pollUntilComplete(() => look(written, stop), { stop, say, retryReason });
    if (isWhole || !interrupts.signal.aborted) return exitCodes.OK.exit;
    sayHowToResume();
    return interrupts.exit()!;
  } catch (error) {
    if (written.resumeCursor !== null) sayHowToResume();
    throw error;
  } finally {
    interrupts.dispose();
  }
}

type Deps = { stop: AbortSignal; say: (line: string) => void; retryReason: (error: unknown) => string | null };

/** Polls until everything is written. Returns false if `stop` came first, or the reader has gone. */
async function pollUntilComplete(look: () => Promise<Found>, { stop, say, retryReason }: Deps): Promise<boolean> {
  let isAway = false;
  while (!stop.aborted) {
    try {
      const found = await look();
      if (found !== 'more') return found === 'all';
      isAway = false;
    } catch (error) {
      if (stop.aborted) return false;
      const away = retryReason(error);
      if (away === null) throw error;
      if (!isAway) say(`warning: ${away}; asking again`);
      isAway = true;
    }
    await sleepUntilAborted(pollMs, stop);
  }
  return false;
}
