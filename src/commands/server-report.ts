import { type ApiClient, withServer } from '../api/client.ts';
import { readRecord } from '../api/remote-runs.ts';
import { ExpungeError, exitCodes } from '../errors.ts';
import { count } from '../format.ts';
import { checkJoined, writeJoined } from '../ledger/join-report.ts';
import type { OutcomeRow } from '../ledger/outcome-rows.ts';
import { type Sink, writeReportFile } from '../ledger/report.ts';
import type { Run } from '../ledger/run.ts';
import type { Verification } from '../operations/verify-run.ts';
import { retryLines } from '../terminal/retry-text.ts';
import { plainLine } from '../terminal/style.ts';
import { certify, type Evidence, refuseBesideCertificate } from './certify.ts';
import { type Invocation, jsonLines } from './command.ts';
import { refuseBesideFollow } from './follow-report.ts';
import {
  openJoined,
  type ReportDeps,
  refuseJsonBesideRows,
  refuseTogether,
  showVerification,
  showWritten,
} from './report.ts';
import { sinkOf } from './report-sink.ts';
import { followOver, wholeLines } from './server-follow.ts';
import { sayOf, sayOn } from './session.ts';

/**
 * `report` by the API of a server, which sends the rows; what is made of them is made here. What is downloaded does not count as the delivered
 * report of the run.
 */
export async function execute(invocation: Invocation): Promise<number> {
  const { args, options, stdout, stderr } = invocation;
  refuseBesideFollow(invocation);
  refuseJsonBesideRows(invocation);
  refuseBesideCertificate(invocation);
  const { format = 'csv', spreadsheetSafe = false, only = null, verify = false } = options as Partial<Wanted>;
  const say = sayOn(stderr);
  const print = jsonLines(stdout, options.json);
  return withServer(invocation, sayOf(invocation), async (api) => {
    const { run, proof } = await readRecord(api, args[0]);
    if (options.follow === true) return followOver(invocation, api, run);
    if (options.certificate === true) return certify(invocation, evidenceOver(api, run));
    for (const line of [...retryLines(run), ...proof]) sayOf(invocation)(`Run ${run.id}: ${plainLine(line)}`);
    const join = await openJoined(invocation);
    refuseTogether({ format, spreadsheetSafe, only, join, verify });
    if (verify) return showVerification(await verifyOver(api, run), { say, print });
    if (join !== null) await checkJoined(join, run, rowsOver(api, run));
    const write = (sink: Sink) =>
      join === null
        ? writeAll(download(api, run, { format, spreadsheetSafe, only }), format, sink)
        : writeJoined(join, run, rowsOver(api, run), only, sink);
    const path = options.output as string | undefined;
    if (path === undefined) {
      await write(sinkOf(stdout, run.id));
      return exitCodes.OK.exit;
    }
    const written = await writeReportFile(path, run.id, write);
    showWritten({ run, format, say, print }, path, format === 'html' ? run.rows : written);
    return exitCodes.OK.exit;
  });
}

const mediaTypes = { csv: 'text/csv', ndjson: 'application/x-ndjson', html: 'text/html' };

type Wanted = Pick<ReportDeps, 'format' | 'spreadsheetSafe' | 'only' | 'verify'>;

function download(api: ApiClient, { id }: Run, { format, spreadsheetSafe, only }: Omit<Wanted, 'verify'>) {
  const query = { format, spreadsheet_safe: String(spreadsheetSafe), only: only?.join(',') };
  return api.text({ method: 'GET', path: `/runs/${id}/report`, query, isLong: true }, mediaTypes[format]);
}

/** What the server counts, in its ledger. */
function verifyOver(api: ApiClient, { id }: Run): Promise<Verification> {
  return api.json({ method: 'GET', path: `/runs/${id}/verification`, isLong: true });
}

function evidenceOver(api: ApiClient, run: Run): Evidence {
  return { run, rows: () => rowsOver(api, run), verify: () => verifyOver(api, run) };
}

/** The rows of a run in input order, as they come. Throws UNREACHABLE where they break off, INTERNAL if they are not all. */
async function* rowsOver(api: ApiClient, run: Run): AsyncGenerator<OutcomeRow[]> {
  let rows = 0;
  for await (const lines of wholeLines(download(api, run, { format: 'ndjson', spreadsheetSafe: false, only: null }))) {
    rows += lines.length;
    yield lines.map(rowIn);
  }
  if (rows === run.rows) return;
  throw new ExpungeError('INTERNAL', `the server sent ${count(rows)} of ${count(run.rows)} rows of run ${run.id}`, {
    next: 'try it again',
  });
}

/** The row in a line of NDJSON. */
function rowIn(line: string): OutcomeRow {
  const { settled_at: settledAt, ...row } = JSON.parse(line);
  return { ...row, settledAt };
}

/** Writes the text until its reader closes, and returns how many rows it has; a line end within quotes of a CSV ends none. */
async function writeAll(text: AsyncIterable<string>, format: Wanted['format'], sink: Sink): Promise<number> {
  let lines = 0;
  let isQuoted = false;
  for await (const part of text) {
    for (const [sign] of part.matchAll(/["\n]/g)) {
      if (sign === '"') isQuoted = format === 'csv' && !isQuoted;
      else if (!isQuoted) lines += 1;
    }
    if (!(await sink(part))) break;
  }
  return lines - (format === 'csv' ? 1 : 0); // without the header
}
