import { ExpungeError } from '../errors.ts';
import { count } from '../format.ts';
import { chooseFrom, type ListedRun, type RunChoice } from '../ledger/list-runs.ts';
import type { OutcomeRow } from '../ledger/outcome-rows.ts';
import { nameEnd } from '../ledger/results.ts';
import { parseRun, type Run } from '../ledger/run.ts';
import { listedFacts } from '../ledger/summary.ts';
import { perOutcome } from '../model/outcome.ts';
import type { RecordOperations, ReportStyle, SearchOptions } from '../operations/operations.ts';
import type { Appearance, Search } from '../operations/search-runs.ts';
import type { Sink } from '../report/report.ts';
import type { ApiClient } from './client.ts';
import type { runSummary } from './overview.ts';
import { readRecord, unlessAway } from './remote-runs.ts';
import { refuseUnknownTarget } from './remote-targets.ts';

/** Queries about runs through the API of a server. Their rows are formatted on this machine. */
export function remoteRecords(api: ApiClient): RecordOperations {
  return {
    place: api.url,
    pollMs: 1_000,
    away: `${api.url} does not answer, so what the run does is not known`,
    find: async (text) => (await readRecord(api, text)).run,
    findTallied: (text) => readRecord(api, text),
    async list(choice) {
      const items = new Map<string, RunItem>();
      const chosen = await chooseFrom(pagesOf(api, choice, items), choice);
      return {
        ...chosen,
        factsOf: ({ id }) => listedFactsOf(items.get(id)!),
        standingOf: ({ id }) => items.get(id)!.standing,
      };
    },
    record: ({ id }) => readRecord(api, id),
    look: async ({ id }) => (await readRecord(api, id).catch(unlessAway)) ?? nobodyKnows,
    history: ({ id }) => api.json({ method: 'GET', path: `/runs/${id}/history` }),
    search: (action) => search(api, action),
    rows: (run) => rowsOf(api, run),
    verify: ({ id }) => api.json({ method: 'GET', path: `/runs/${id}/verification`, isLong: true }),
    write: (run, style, sink) => write(api, run, style, sink),
    noteReport: async () => {}, // a downloaded file is not the delivered report of the run
    noteManifest: async () => {}, // a reader of a server changes nothing there, not even the audit trail
  };
}

const nobodyKnows: Record<'run' | 'context', undefined> = { run: undefined, context: undefined };

/** A run as the API lists it. */
type RunItem = ReturnType<typeof runSummary>;

const maxPageSize = 500;

/** The runs of the server, newest first, as far as the choice may need them; `items` collects the answers. */
async function* pagesOf(
  api: ApiClient,
  { states, target, since = 0, list, by, label, sort, limit }: RunChoice,
  items: Map<string, RunItem>,
): AsyncGenerator<ListedRun[]> {
  const isEachShown = sort === 'created' && list === undefined && by === undefined;
  const size = isEachShown ? Math.min(maxPageSize, limit + 1) : maxPageSize; // one more shows whether there are more
  const query = { state: states?.join(','), target, label, limit: String(size) };
  for (let cursor: string | null | undefined; cursor !== null; ) {
    const request = { method: 'GET', path: '/runs', query: { ...query, cursor } } as const;
    const page = await api.json<{ items: RunItem[]; next: string | null }>(request);
    for (const item of page.items) items.set(item.run, item);
    const runs = page.items.map(listedRun);
    yield runs.filter(({ createdAt }) => createdAt >= since);
    cursor = runs.some(({ createdAt }) => createdAt < since) ? null : page.next;
  }
}

/** The facts of a run that lists choose, sort and show. */
function listedRun(item: RunItem): ListedRun {
  const { state, rows, files, results, results_problem: problem } = item;
  const run = {
    ...parseRun(item.run, {}),
    state,
    rows,
    files,
    counts: perOutcome((outcome) => item[outcome]),
    baseUrl: item.target,
    account: item.account,
    createdBy: item.created_by,
    labels: Object.entries(item.labels)
      .map((label) => label.join('='))
      .join(),
    retryOf: item.retry_of ?? '',
    createdAt: at(item.created_at),
    changedAt: at(item.changed_at),
    endedAt: at(item.ended_at),
    resultsWanted: results !== null || problem !== null,
    resultsIn: results ?? '',
    resultsBy: item.results_by ?? '',
    resultsProblem: problem ?? '',
  };
  return { ...run, resultsOf: results === null ? '' : nameEnd(run) };
}

function at(time: string | null): number {
  return time === null ? 0 : Date.parse(time);
}

const listedKeys = [...Object.keys(listedFacts(parseRun('', {}), 0)), 'standing'];

/** The facts that `runs --json` prints; the API sends more. */
function listedFactsOf(item: RunItem): Record<string, unknown> {
  const facts = Object.entries(item).filter(([key]) => listedKeys.includes(key));
  return { v: 1, type: 'summary', ...Object.fromEntries(facts) };
}

/** The server searches all its runs before it answers. */
async function* search(api: ApiClient, action: SearchOptions): AsyncGenerator<Appearance> {
  const { target, wanted, searched, onProblem } = action;
  await refuseUnknownTarget(api, target);
  const request = { method: 'GET', path: `/targets/${target.fp}/found`, query: wanted, isLong: true } as const;
  const found = await api.json<{ items: Appearance[]; searched: Search['searched']; warnings: string[] }>(request);
  Object.assign(searched, found.searched);
  for (const words of found.warnings) onProblem(words);
  yield* found.items;
}

const mediaTypes = { csv: 'text/csv', ndjson: 'application/x-ndjson', html: 'text/html' };

function download(api: ApiClient, { id }: Run, { format, spreadsheetSafe, only }: ReportStyle) {
  const query = { format, spreadsheet_safe: String(spreadsheetSafe), only: only?.join(',') };
  return api.text({ method: 'GET', path: `/runs/${id}/report`, query, isLong: true }, mediaTypes[format]);
}

/** The rows of a run in input order, as they come. Throws UNREACHABLE if they break off, and INTERNAL if they are incomplete. */
async function* rowsOf(api: ApiClient, run: Run): AsyncGenerator<OutcomeRow[]> {
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

/** Writes what the server sends until the reader closes, and returns the number of rows. A line end within quotes of a CSV does not end a row. */
async function write(api: ApiClient, run: Run, style: ReportStyle, sink: Sink): Promise<number> {
  const { format } = style;
  let lines = 0;
  let isQuoted = false;
  for await (const part of download(api, run, style)) {
    for (const [sign] of part.matchAll(/["\n]/g)) {
      if (sign === '"') isQuoted = format === 'csv' && !isQuoted;
      else if (!isQuoted) lines += 1;
    }
    if (!(await sink(part))) break;
  }
  return format === 'html' ? run.rows : lines - (format === 'csv' ? 1 : 0); // without the header line
}

/** The whole lines of a text, as each part completes them; text after the last line end is dropped. */
async function* wholeLines(text: AsyncIterable<string>): AsyncGenerator<string[]> {
  let rest = '';
  for await (const part of text) {
    const lines = (rest + part).split('\n');
    rest = lines.pop()!;
    if (lines.length > 0) yield lines;
  }
}
