import { type ApiClient, withServer } from '../api/client.ts';
import type { runSummary } from '../api/overview.ts';
import { chooseFrom, type ListedRun, type RunChoice } from '../ledger/list-runs.ts';
import { endNameOf } from '../ledger/results.ts';
import { parseRun } from '../ledger/run.ts';
import { summaryOf } from '../ledger/summary.ts';
import { perOutcome } from '../model/outcome.ts';
import { type Invocation, jsonLines } from './command.ts';
import { choiceOf, listText } from './runs.ts';
import { sayUnlessJson } from './session.ts';

/** `runs` by the API of a server. */
export async function execute(invocation: Invocation): Promise<number> {
  return withServer(invocation, sayUnlessJson(invocation), (api) => list(invocation, api));
}

async function list({ options, stdout }: Invocation, api: ApiClient): Promise<number> {
  const choice = choiceOf(options);
  const items = new Map<string, RunItem>();
  const chosen = await chooseFrom(pagesOf(api, choice, items), choice);
  const print = jsonLines(stdout, options.json);
  for (const { id } of chosen.runs) print('summary', summaryFacts(items.get(id)!));
  if (!options.json) stdout.write(`${listText(chosen, choice, api.url)}\n`);
  return 0;
}

/** A run as the API lists it. */
type RunItem = ReturnType<typeof runSummary>;

const pageAtMost = 500;

/** The runs of the server, newest first, as far as the choice may need them; `items` gets what was answered. */
async function* pagesOf(
  api: ApiClient,
  { states, target, since = 0, list, by, sort, limit }: RunChoice,
  items: Map<string, RunItem>,
): AsyncGenerator<ListedRun[]> {
  const isEachShown = sort === 'created' && list === undefined && by === undefined;
  const size = isEachShown ? Math.min(pageAtMost, limit + 1) : pageAtMost; // one more tells whether there are more
  const query = { state: states?.join(','), target, limit: String(size) };
  for (let cursor: string | null | undefined; cursor !== null; ) {
    const request = { method: 'GET', path: '/runs', query: { ...query, cursor } } as const;
    const page = await api.json<{ items: RunItem[]; next: string | null }>(request);
    for (const item of page.items) items.set(item.run, item);
    const runs = page.items.map(listedRun);
    yield runs.filter(({ createdAt }) => createdAt >= since);
    cursor = runs.some(({ createdAt }) => createdAt < since) ? null : page.next;
  }
}

/** What is chosen, sorted and shown of a run. */
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
    retryOf: item.retry_of ?? '',
    createdAt: at(item.created_at),
    changedAt: at(item.changed_at),
    endedAt: at(item.ended_at),
    resultsWanted: results !== null || problem !== null,
    resultsIn: results ?? '',
    resultsBy: item.results_by ?? '',
    resultsProblem: problem ?? '',
  };
  return { ...run, resultsOf: results === null ? '' : endNameOf(run) };
}

function at(time: string | null): number {
  return time === null ? 0 : Date.parse(time);
}

const summaryKeys = Object.keys(summaryOf(parseRun('', {}), null, 0));

/** What `--json` prints of a run: the API answers more. */
function summaryFacts(item: RunItem): Record<string, unknown> {
  return Object.fromEntries(Object.entries(item).filter(([key]) => summaryKeys.includes(key)));
}
