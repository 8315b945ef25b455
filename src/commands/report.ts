import { resolve } from 'node:path';
import { ExpungeError, exitCodes, systemCode } from '../errors.ts';
import { checkConservation, sumInWords } from '../ledger/conservation.ts';
import { readOutcomes } from '../ledger/ordered-rows.ts';
import { noteReport } from '../ledger/remove-run.ts';
import { type Sink, writeReport } from '../ledger/report.ts';
import { notWritten, ReportFile } from '../ledger/report-file.ts';
import type { ReportFormat } from '../ledger/report-line.ts';
import { isSealed, type Run } from '../ledger/run.ts';
import { sealTally, tallyLedger } from '../ledger/tally.ts';
import type { RedisClient } from '../redis/client.ts';

export type ReportDeps = {
  redis: RedisClient;
  run: Run;
  format: ReportFormat;
  output: string | null; // null: to `out`
  spreadsheetSafe: boolean;
  verify: boolean; // count instead of writing a report
  out: NodeJS.WritableStream;
  say: (line: string) => void;
};

/** Writes the report of a run, or verifies it. Returns the exit code; throws INTERNAL if the file cannot be written. */
export async function reportRun(deps: ReportDeps): Promise<number> {
  if (deps.verify) return verifyRun(deps);
  if (deps.spreadsheetSafe && deps.format !== 'csv') {
    throw new ExpungeError('USAGE', `--spreadsheet-safe changes ids in a CSV; ${deps.format} is always lossless`);
  }
  await (deps.output === null ? toStream(deps) : toFile(deps, deps.output));
  return exitCodes.OK.exit;
}

async function verifyRun({ redis, run, say }: ReportDeps): Promise<number> {
  const sealed = await sealTally(redis, run);
  const tally = await tallyLedger(redis, sealed);
  const trouble = checkConservation(sealed, tally);
  say(trouble ?? `adds up: ${sumInWords(tally)}`);
  return trouble === null ? exitCodes.OK.exit : exitCodes.INTERNAL.exit;
}

async function toFile(deps: ReportDeps, path: string): Promise<void> {
  const file = await ReportFile.open(path, deps.run.id);
  try {
    const rows = await writeRows(deps, (text) => file.write(text));
    await file.commit();
    if (isSealed(deps.run.state)) await noteReport(deps.redis, deps.run, resolve(path)).catch(() => {}); // the report is there
    deps.say(`${rows.toLocaleString('en-US')} rows in ${path}`);
  } catch (error) {
    await file.discard();
    throw error;
  }
}

async function toStream(deps: ReportDeps): Promise<void> {
  await writeRows(deps, streamSink(deps));
}

function writeRows({ redis, run, format, spreadsheetSafe }: ReportDeps, sink: Sink): Promise<number> {
  return writeReport(readOutcomes(redis, run), { format, spreadsheetSafe }, sink);
}

/** Waits for each text to leave. A reader who has seen enough (`| head`) is no error. */
function streamSink({ out, run }: ReportDeps): Sink {
  out.on('error', () => {}); // the error comes to the callback below too; unheard here it would end the process
  return (text) =>
    new Promise((resolve, reject) => {
      out.write(text, (error) => {
        if (!error) resolve(true);
        else if (['EPIPE', 'ERR_STREAM_DESTROYED'].includes(systemCode(error))) resolve(false);
        else reject(notWritten('stdout', run.id, error));
      });
    });
}
