import { resolve } from 'node:path';
import { ExpungeError, exitCodes, readNamedFile } from '../../errors.ts';
import { count } from '../../format.ts';
import { isFinalized, type Run } from '../../ledger/run.ts';
import { visibleLine } from '../../model/visible.ts';
import type { RecordOperations } from '../../operations/operations.ts';
import { type ReportStyle, type Sink, writeReport, writeReportFile } from '../../report/report.ts';
import {
  hashingSink,
  manifestDifferences,
  manifestOf,
  type ReportManifest,
  readManifest,
} from '../../report/report-manifest.ts';
import { type Invocation, jsonLines } from '../command.ts';
import type { Options } from '../options.ts';
import { lineWriter, readBy } from '../session.ts';
import { toSink } from './report-sink.ts';

/** The rows of a run in input order, and a count of them in the ledger: from Redis, or from a server. */
type Records = Pick<RecordOperations, 'rows' | 'verify'>;

/** Checks the options that --manifest and --check exclude. Throws USAGE. */
export function refuseManifestConflicts({ options }: Invocation): void {
  const isGiven = (name: keyof Options) => options[name] !== undefined && options[name] !== false;
  const check = ['output', 'format', 'spreadsheetSafe', 'manifest'] as const;
  const others = ['only', 'join', 'verify', ...(options.check === undefined ? [] : check)] as const;
  const flag = options.check === undefined ? '--manifest' : '--check';
  if (options.check === undefined && options.manifest === undefined) return;
  if (options.output !== undefined && resolve(options.output) === resolve(options.manifest ?? ''))
    throw new ExpungeError(
      'USAGE',
      '--output and --manifest name the same file: the manifest would replace the report',
      {
        next: 'name another file with --manifest',
      },
    );
  const other = others.find(isGiven);
  if (other === undefined && options.format !== 'html') return;
  const named = other === undefined ? '--format html' : `--${other === 'spreadsheetSafe' ? 'spreadsheet-safe' : other}`;
  throw new ExpungeError('USAGE', `${flag} cannot be combined with ${named}: a manifest is of a whole report`, {
    next: `omit ${named}`,
  });
}

/** `report --manifest`: writes the report of an ended run, then its manifest, and records that in the audit trail. Repeating it gives the same bytes. */
export async function reportWithManifest(
  invocation: Invocation,
  records: Records & Pick<RecordOperations, 'noteManifest'>,
  run: Run,
  style: ReportStyle,
): Promise<number> {
  const { options, stdout, stderr } = invocation;
  const { output, manifest: path = '' } = options;
  await requireEnded(records, run);
  const made = await (output === undefined
    ? writeHashed(records, run, style, toSink(stdout, run.id))
    : writeReportFile(output, run.id, (sink) => writeHashed(records, run, style, sink)));
  if (made === null) return exitCodes.OK.exit; // the reader closed stdout
  const { sha256 } = made.report;
  await writeReportFile(path, run.id, (sink) => sink(`${JSON.stringify(made, null, 2)}\n`));
  await records.noteManifest(run, readBy(invocation), sha256);
  lineWriter(stderr)(`${count(run.rows)} rows, SHA-256 ${sha256}; the manifest is in ${path}`);
  jsonLines(stdout, options.json)('manifest', { run: run.id, rows: run.rows, file: output, manifest: path, sha256 });
  return exitCodes.OK.exit;
}

/** Writes the report. Returns its manifest, or null if the reader has gone. */
async function writeHashed(records: Records, run: Run, style: ReportStyle, to: Sink): Promise<ReportManifest | null> {
  const { sink, written } = hashingSink(to);
  const found = await writeReport(records.rows(run), { ...style, only: null }, sink);
  if (found !== run.rows) return null;
  return manifestOf(run, { format: style.format, spreadsheet_safe: style.spreadsheetSafe, ...written() });
}

/** `report --check`: computes the report of the run again, and compares it with a manifest. Returns 1 if something differs. Only reads. */
export async function checkManifest(invocation: Invocation, records: RecordOperations): Promise<number> {
  const { args, options, stdout, stderr } = invocation;
  const path = options.check!;
  const manifest = readManifest(readNamedFile('--check', path, 'USAGE'));
  if (manifest === null)
    throw new ExpungeError('USAGE', `--check ${path}: expected a manifest as \`report --manifest\` writes it`);
  const { run } = await records.findTallied(args[0] ?? manifest.run);
  await requireEnded(records, run);
  const { format, spreadsheet_safe: spreadsheetSafe } = manifest.report;
  const now = await writeHashed(records, run, { format, spreadsheetSafe }, async () => true);
  const differences = manifestDifferences(manifest, now!);
  const say = lineWriter(stderr);
  if (differences.length === 0)
    say(`${path} holds: run ${run.id}, ${count(run.rows)} rows, SHA-256 of the report ${now!.report.sha256}`);
  else say(`${path} does not hold for run ${run.id}:`);
  for (const difference of differences) say(`  ${visibleLine(difference)}`);
  jsonLines(stdout, options.json)('manifest_check', {
    run: run.id,
    file: path,
    ok: differences.length === 0,
    differences,
  });
  return differences.length === 0 ? exitCodes.OK.exit : exitCodes.INTERNAL.exit;
}

/** Throws unless the run is finalized and its ledger adds up: a manifest states the outcome of every row for good. */
async function requireEnded(records: Records, run: Run): Promise<void> {
  if (!isFinalized(run.state))
    throw new ExpungeError('USAGE', `run ${run.id} is ${run.state}; only a run that has ended has a manifest`, {
      next: (toType) => `wait for its end: ${toType('status', run.id, '--watch')}`,
    });
  const { problem } = await records.verify(run);
  if (problem !== null) throw new ExpungeError('INTERNAL', `run ${run.id} gets no manifest: ${problem}`);
}
