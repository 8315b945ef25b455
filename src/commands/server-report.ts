import { type ApiClient, withServer } from '../api/client.ts';
import { ExpungeError, exitCodes } from '../errors.ts';
import { count } from '../format.ts';
import { type Sink, writeReportFile } from '../ledger/report.ts';
import type { Run } from '../ledger/run.ts';
import { retryFacts } from '../ledger/summary.ts';
import type { Selection } from '../model/selection.ts';
import { retryLines } from '../terminal/retry-text.ts';
import { type Invocation, jsonLines } from './command.ts';
import { type ReportDeps, refuseJsonBesideRows, refuseTogether } from './report.ts';
import { sinkOf } from './report-sink.ts';
import { readRecord } from './server-status.ts';
import { sayOf, sayOn } from './session.ts';

/** `report` by the API of a server: what is downloaded does not count as the delivered report of the run. */
export async function execute(invocation: Invocation): Promise<number> {
  const { args, options, stdout, stderr } = invocation;
  refuseBesideServer(invocation);
  refuseJsonBesideRows(invocation);
  const { format = 'csv', spreadsheetSafe = false, only = null } = options as Partial<Wanted>;
  refuseTogether({ format, spreadsheetSafe, only, join: null, verify: false });
  return withServer(invocation, sayOf(invocation), async (api) => {
    const { run } = await readRecord(api, args[0]);
    for (const line of retryLines(run)) sayOf(invocation)(`Run ${run.id}: ${line}`);
    const text = download(api, run, { format, spreadsheetSafe, only });
    const path = options.output as string | undefined;
    if (path === undefined) {
      await writeAll(text, format === 'csv', sinkOf(stdout, run.id));
      return exitCodes.OK.exit;
    }
    const lines = await writeReportFile(path, run.id, (sink) => writeAll(text, format === 'csv', sink));
    const rows = format === 'html' ? run.rows : lines - (format === 'csv' ? 1 : 0); // without the header
    sayOn(stderr)(format === 'html' ? `page in ${path}` : `${count(rows)} rows in ${path}`);
    jsonLines(stdout, options.json)('report', { run: run.id, rows, format, file: path, ...retryFacts(run) });
    return exitCodes.OK.exit;
  });
}

type Wanted = Pick<ReportDeps, 'format' | 'spreadsheetSafe'> & { only: Selection | null };

function download(api: ApiClient, { id }: Run, { format, spreadsheetSafe, only }: Wanted): AsyncGenerator<string> {
  const query = { format, spreadsheet_safe: String(spreadsheetSafe), only: only?.join(',') };
  return api.text({ method: 'GET', path: `/runs/${id}/report`, query, isLong: true });
}

/** Throws USAGE for what only the ledger itself can tell. */
function refuseBesideServer({ options }: Invocation): void {
  const other = ['join', 'certificate', 'verify', 'follow', 'from'].find((name) => options[name] !== undefined);
  if (other === undefined) return;
  throw new ExpungeError('USAGE', `--${other} needs Redis itself: a server only sends reports of one moment`, {
    next: `omit --${other}, or do it where Redis can be reached, without --server`,
  });
}

/** Writes the text until its reader closes, and returns how many lines it has; a line end within quotes of a CSV ends none. */
async function writeAll(text: AsyncIterable<string>, isCsv: boolean, sink: Sink): Promise<number> {
  let lines = 0;
  let isQuoted = false;
  for await (const part of text) {
    for (const [sign] of part.matchAll(/["\n]/g)) {
      if (sign === '"') isQuoted = isCsv && !isQuoted;
      else if (!isQuoted) lines += 1;
    }
    if (!(await sink(part))) break;
  }
  return lines;
}
