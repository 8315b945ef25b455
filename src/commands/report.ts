import { fstatSync, writeSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { ExpungeError, exitCodes, systemCode } from '../errors.ts';
import { markDelivered } from '../ledger/end-run.ts';
import { readOutcomes } from '../ledger/outcome-rows.ts';
import { notWritten, ReportFile, type ReportFormat, type Sink, writeReport } from '../ledger/report.ts';
import { isSealed, type Run } from '../ledger/run.ts';
import { checkConservation, sealTally, sumInWords, tallyLedger } from '../ledger/tally.ts';
import type { RedisClient } from '../redis/client.ts';
import { type Invocation, type JsonLines, jsonLines } from './command.ts';
import { findRun, sayOf, sayOn, withRedis } from './session.ts';

export type ReportDeps = {
  redis: RedisClient;
  run: Run;
  format: ReportFormat;
  output: string | null; // null: to `out`
  spreadsheetSafe: boolean;
  verify: boolean; // count instead of writing a report
  out: NodeJS.WritableStream;
  say: (line: string) => void;
  print: JsonLines; // what was done, as --json has it
};

export async function execute(invocation: Invocation): Promise<number> {
  const { args, options, stdout, stderr } = invocation;
  refuseMixture(invocation);
  const say = sayOn(stderr);
  const print = jsonLines(stdout, options.json);
  return withRedis(invocation, sayOf(invocation), async (session) => {
    const found = await findRun(session, args[0]);
    const run = isSealed(found.state) ? await sealTally(session.redis, found) : found;
    const { format = 'csv', output = null, verify = false, spreadsheetSafe = false } = options as Record<string, never>;
    return reportRun({ redis: session.redis, run, format, output, verify, spreadsheetSafe, out: stdout, say, print });
  });
}

/** One stream holds the report or what is told about it. */
function refuseMixture({ options }: Invocation): void {
  if (!options.json || options.output !== undefined || options.verify === true) return;
  throw new ExpungeError('USAGE', '--json tells what --output or --verify did; here stdout holds the report itself', {
    next: 'for a report as JSON: --format ndjson',
  });
}

/** Writes the report of a run, or verifies it. Returns the exit code; throws INTERNAL if it cannot be written as a whole. */
export async function reportRun(deps: ReportDeps): Promise<number> {
  if (deps.verify) return verifyRun(deps);
  if (deps.spreadsheetSafe && deps.format !== 'csv') {
    throw new ExpungeError('USAGE', `--spreadsheet-safe changes ids in a CSV; ${deps.format} is always lossless`);
  }
  await (deps.output === null ? toStream(deps) : toFile(deps, deps.output));
  return exitCodes.OK.exit;
}

async function verifyRun({ redis, run, say, print }: ReportDeps): Promise<number> {
  if (run.state === 'preparing') {
    throw new ExpungeError('USAGE', `run ${run.id} can't be verified: its list was not written completely`, {
      next: `run its command again: ${run.command}`,
    });
  }
  const sealed = await sealTally(redis, run);
  const tally = await tallyLedger(redis, sealed);
  const trouble = checkConservation(sealed, tally);
  say(trouble ?? `adds up: ${sumInWords(tally)}`);
  const { counts, pending } = tally;
  print('verification', {
    run: run.id,
    adds_up: trouble === null,
    problem: trouble,
    rows: run.rows,
    pending,
    ...counts,
  });
  return trouble === null ? exitCodes.OK.exit : exitCodes.INTERNAL.exit;
}

/** Whoever has the report in a file has what the command of the run owes; where it has written one itself, that stays the first. */
async function noteReport({ redis, run }: ReportDeps, path: string): Promise<void> {
  if (run.reportIn === '') await markDelivered(redis, run, path);
}

async function toFile(deps: ReportDeps, path: string): Promise<void> {
  const file = await ReportFile.open(path, deps.run.id);
  try {
    const rows = await writeRows(deps, (text) => file.write(text));
    await file.commit();
    if (isSealed(deps.run.state) && (await isKept(path))) await noteReport(deps, resolve(path)).catch(() => {}); // the report is there
    deps.say(`${rows.toLocaleString('en-US')} rows in ${path}`);
    deps.print('report', { run: deps.run.id, rows, format: deps.format, file: path });
  } catch (error) {
    await file.discard();
    throw error;
  }
}

/** A pipe or a device keeps nothing: `--output /dev/null` is no report that could be looked into later. */
async function isKept(path: string): Promise<boolean> {
  return (await stat(path).catch(() => null))?.isFile() ?? false;
}

/** A shell that sends stdout to a file leaves there what was written: it cannot be taken back, so it must not pass for a report. */
async function toStream(deps: ReportDeps): Promise<void> {
  const file = fileOf(deps.out);
  const sink = file === null ? streamSink(deps.out) : fileSink(file);
  const run = deps.run.id;
  await writeRows(deps, (text) =>
    sink(text).catch((error) => {
      throw notWritten('stdout, which holds a part of it', run, error);
    }),
  );
}

/** The descriptor of the regular file that a stream writes to, or null. */
function fileOf(out: NodeJS.WritableStream): number | null {
  const { fd } = out as { fd?: number };
  return fd !== undefined && fstatSync(fd).isFile() ? fd : null;
}

/** The stream of a file takes a write that was cut short for a whole one: on a full disk the end would be missing without a word. */
function fileSink(file: number): Sink {
  return async (text) => {
    const bytes = Buffer.from(text);
    for (let at = 0; at < bytes.length; ) at += writeSync(file, bytes, at);
    return true;
  };
}

function writeRows({ redis, run, format, spreadsheetSafe }: ReportDeps, sink: Sink): Promise<number> {
  return writeReport(readOutcomes(redis, run), { format, spreadsheetSafe }, sink);
}

/** Waits for each text to leave. A reader who has seen enough (`| head`) is no error. */
function streamSink(out: NodeJS.WritableStream): Sink {
  out.on('error', () => {}); // the error comes to the callback below too; unheard here it would end the process
  return (text) =>
    new Promise((resolve, reject) => {
      out.write(text, (error) => {
        if (!error) resolve(true);
        else if (['EPIPE', 'ERR_STREAM_DESTROYED'].includes(systemCode(error))) resolve(false);
        else reject(error);
      });
    });
}
