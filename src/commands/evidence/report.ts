import { stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { ExpungeError, exitCodes, messageOf } from '../../errors.ts';
import { count } from '../../format.ts';
import { formatByName, toInputOptions } from '../../input/input-options.ts';
import { openInputs } from '../../input/open-inputs.ts';
import { countPending, isFinalized, type Run } from '../../ledger/run.ts';
import { type Standing, standingText } from '../../ledger/standing.ts';
import { retryFacts } from '../../ledger/summary.ts';
import { sumInWords } from '../../ledger/tally.ts';
import { quoteForShell } from '../../model/shell-word.ts';
import { visibleLine } from '../../model/visible.ts';
import type { RecordOperations, ReportStyle } from '../../operations/operations.ts';
import { standingsOfRun } from '../../operations/take-snapshot.ts';
import type { Verification } from '../../operations/verify-run.ts';
import { keptFolders } from '../../report/file-retention.ts';
import { checkJoined, type JoinedFiles, writeJoined } from '../../report/join-report.ts';
import { type Sink, writeReportFile } from '../../report/report.ts';
import { retryLines } from '../../terminal/retry-text.ts';
import { type Invocation, type JsonLines, jsonLines } from '../command.ts';
import { infoWriter, lineWriter } from '../session.ts';
import { withOperations } from '../with-operations.ts';
import { checkManifest, refuseManifestConflicts, reportWithManifest } from './report-manifest.ts';
import { toSink } from './report-sink.ts';

/** `report`: for a run that has not ended, writes the rows that are settled. Only reads, so repeating it is harmless. */
export async function execute(invocation: Invocation): Promise<number> {
  const { args, options, stdout, stderr } = invocation;
  requireOutputForJson(invocation);
  refuseManifestConflicts(invocation);
  const say = lineWriter(stderr);
  const print = jsonLines(stdout, options.json);
  return withOperations(invocation, 'records', async (records) => {
    if (options.check !== undefined) return checkManifest(invocation, records);
    if (args[0] === undefined) throw noRun();
    const { run, proof } = await records.findTallied(args[0]).catch((error) => tellKept(error, invocation));
    const { output = null, only = null, verify = false } = options;
    const { format = 'csv', spreadsheetSafe = false } = options;
    if (options.manifest !== undefined && format !== 'html') {
      const style = { format, spreadsheetSafe };
      refuseOptionConflicts({ ...style, only, join: null, verify });
      const exit = await reportWithManifest(invocation, records, run, style);
      if (output !== null) await noteDelivered({ records, run, format, only, join: null }, output);
      return exit;
    }
    for (const line of [...retryLines(run), ...proof]) infoWriter(invocation)(`Run ${run.id}: ${visibleLine(line)}`);
    const join = await openJoined(invocation);
    const standings = output === null ? [] : standingsOfRun(run, (await records.record(run)).context);
    const choice = { format, spreadsheetSafe, output, only, join, verify };
    return reportRun({ records, run, standings, ...choice, out: stdout, say, print });
  });
}

function noRun(): ExpungeError {
  return new ExpungeError('USAGE', 'report needs the id of a run', {
    next: (toType) => `${toType('runs')} lists them`,
  });
}

/** Rethrows the error. For a run that is no longer in Redis, its message says where on this machine the report was kept. */
async function tellKept(error: unknown, { args, config }: Invocation): Promise<never> {
  const isUnknown = error instanceof ExpungeError && error.code === 'USAGE';
  const [folder, ...others] = isUnknown ? await keptFolders(config.stateDir, args[0] ?? '') : [];
  if (folder === undefined || others.length > 0) throw error;
  const message = `${messageOf(error)}: Redis no longer has it; its report is kept in ${visibleLine(folder)}`;
  throw new ExpungeError('USAGE', message, { cause: error, next: `ls ${quoteForShell(folder)}` });
}

/** The files of `--join`, or null. Throws USAGE for anything but CSV files: lines have no columns, and a pipe can be read only once. */
async function openJoined({ options, config }: Invocation): Promise<JoinedFiles | null> {
  const paths = options.join;
  if (paths === undefined) return null;
  const files = await openInputs(paths);
  const wrong = files.find(({ name, isPipe }) => isPipe || (formatByName(name) ?? 'csv') !== 'csv');
  if (wrong !== undefined)
    throw new ExpungeError('USAGE', `--join needs CSV files, and ${wrong.name} is not one`, {
      next: 'the report itself has a line for each row: omit --join',
    });
  // The run has already accepted the list, and each row is compared with the row of the run.
  const accepted = { ...toInputOptions(config), allowColumnNames: true, allowDamagedNumbers: true };
  return { files, options: accepted, limit: config.limit ?? null };
}

/** Throws USAGE for `--json` without --output: stdout holds the report itself, where `--json` would print what was done. */
function requireOutputForJson({ options }: Invocation): void {
  if (!options.json || [options.output, options.check].some((path) => path !== undefined) || options.verify === true)
    return;
  throw new ExpungeError('USAGE', '--json needs --output or --verify: without them, stdout holds the report itself', {
    next: 'for a report as JSON: --format ndjson',
  });
}

export type ReportDeps = ReportStyle & {
  records: Pick<RecordOperations, 'rows' | 'verify' | 'write' | 'noteReport'>;
  run: Run;
  standings: readonly Standing[]; // what holds the run back
  output: string | null; // a path; null: write to `out`
  join: JoinedFiles | null; // lists of the run, to which outcomes are added
  verify: boolean; // count instead of writing a report
  out: NodeJS.WritableStream;
  say: (line: string) => void;
  print: JsonLines; // prints what was done, for --json
};

/** Writes the report of a run, or verifies it. Returns the exit code; throws INTERNAL if it cannot be written as a whole. */
export async function reportRun(deps: ReportDeps): Promise<number> {
  refuseOptionConflicts(deps);
  if (deps.verify) return showVerification(await deps.records.verify(deps.run), deps);
  if (deps.join !== null) await checkJoined(deps.join, deps.run, deps.records.rows(deps.run));
  await (deps.output === null ? writeRows(deps, toSink(deps.out, deps.run.id)) : toFile(deps, deps.output));
  return exitCodes.OK.exit;
}

type Choice = Pick<ReportDeps, 'verify' | 'only' | 'join' | 'spreadsheetSafe' | 'format'>;

/** Throws USAGE for options that exclude each other. */
function refuseOptionConflicts({ verify, only, join, spreadsheetSafe, format }: Choice): void {
  const next = 'give one of them';
  if (verify && (only !== null || join !== null))
    throw new ExpungeError(
      'USAGE',
      '--verify cannot be combined with --only or --join: it counts all rows of the run',
      {
        next,
      },
    );
  if (format === 'html' && only !== null)
    throw new ExpungeError('USAGE', '--only chooses rows; a page shows the whole run', {
      next: 'omit --only, or --format html',
    });
  if (spreadsheetSafe && format !== 'csv')
    throw new ExpungeError('USAGE', `--spreadsheet-safe changes ids in a CSV; ${format} leaves them as they are`);
  if (join !== null && (spreadsheetSafe || format !== 'csv'))
    throw new ExpungeError('USAGE', '--join keeps the lines of a CSV as they are', {
      next: `omit ${spreadsheetSafe ? '--spreadsheet-safe' : `--format ${format}`}, or --join`,
    });
}

/** Shows and prints the result of a count. Returns the exit code. */
function showVerification(found: Verification, { say, print }: Pick<ReportDeps, 'say' | 'print'>): number {
  say(found.problem ?? `adds up: ${sumInWords({ counts: found, pending: found.pending })}`);
  print('verification', found);
  return found.adds_up ? exitCodes.OK.exit : exitCodes.INTERNAL.exit;
}

type Delivery = Pick<ReportDeps, 'records' | 'run' | 'format' | 'only' | 'join'>;

/**
 * Records a written file with all rows of an ended run as the delivered report, as the command of the run does; the first one stays recorded. Never
 * throws.
 */
async function noteDelivered({ records, run, format, only, join }: Delivery, path: string): Promise<void> {
  const isWhole = isFinalized(run.state) && format !== 'html' && only === null && join === null;
  if (run.reportIn !== '' || !isWhole || !(await isKept(path))) return;
  await records.noteReport(run, resolve(path)).catch(() => {});
}

async function toFile(deps: ReportDeps, path: string): Promise<void> {
  const rows = await writeReportFile(path, deps.run.id, (sink) => writeRows(deps, sink));
  await noteDelivered(deps, path); // recorded only after the report exists
  showWritten(deps, path, rows);
}

/** Shows and prints what a file holds now. */
function showWritten(
  { run, standings, format, only, say, print }: Omit<ReportDeps, 'records' | 'output' | 'join' | 'verify' | 'out'>,
  path: string,
  rows: number,
): void {
  say(
    format === 'html'
      ? `page in ${path}`
      : `${count(rows)} rows in ${path}${only === null ? pendingText(run, standings) : ''}`,
  );
  print('report', { run: run.id, rows, format, file: path, ...retryFacts(run) });
}

/** How many rows of a complete report are missing. The run was read before its rows, which may have changed since. */
function pendingText(run: Run, [standing]: readonly Standing[]): string {
  const pending = countPending(run);
  if (isFinalized(run.state) || pending === 0) return '';
  if (standing === undefined) return `, at most ${count(pending)} of them pending: the run continues`;
  return `, ${count(pending)} of them pending. ${visibleLine(standingText(standing, Date.now()))}`;
}

/** Whether the path keeps what is written. A pipe or a device does not: `--output /dev/null` delivers no report. */
async function isKept(path: string): Promise<boolean> {
  return (await stat(path).catch(() => null))?.isFile() ?? false;
}

/** Writes the rows. Returns the number of rows. */
async function writeRows({ records, run, join, ...style }: ReportDeps, sink: Sink): Promise<number> {
  const { format, spreadsheetSafe, only } = style;
  if (join !== null) return writeJoined(join, run, records.rows(run), only, sink);
  return records.write(run, { format, spreadsheetSafe, only }, sink);
}
