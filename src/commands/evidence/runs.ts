import { existsSync } from 'node:fs';
import { count, timeOfDay } from '../../format.ts';
import { wentWell } from '../../ledger/conclusion.ts';
import type { ChosenRuns, ListedRun, RunChoice } from '../../ledger/list-runs.ts';
import { awaitsResults } from '../../ledger/results.ts';
import { countPending, type Run } from '../../ledger/run.ts';
import { causeWords, type StandingFacts } from '../../ledger/standing.ts';
import { toExitCode } from '../../ledger/summary.ts';
import { anyResource } from '../../model/resource.ts';
import type { ToType } from '../../model/to-type.ts';
import { visibleLine } from '../../model/visible.ts';
import { requireEndedForRemoval } from '../../operations/remove-run.ts';
import { columns, type TableFit, tableFit } from '../../terminal/style.ts';
import { type Invocation, jsonLines } from '../command.ts';
import { askYes, readBy, writeWarnings } from '../session.ts';
import { withOperations } from '../with-operations.ts';
import { describeReportLocation, describeResults } from './report-location.ts';

/** `runs` lists runs; `runs remove` removes an ended run, and the target's audit trail records it. */
export async function execute(invocation: Invocation): Promise<number> {
  return invocation.commandName === 'runs' ? list(invocation) : remove(invocation);
}

async function list(invocation: Invocation): Promise<number> {
  const { options, toType, stdout, env } = invocation;
  return withOperations(invocation, 'records', async (records) => {
    const choice = choiceOf(options);
    const { factsOf, standingOf, ...chosen } = await records.list(choice, toType);
    const fit = tableFit(stdout, env, ['RESULTS', 'ROWS', 'TARGET', 'PENDING']);
    if (!options.json) stdout.write(`${listText(chosen, { choice, where: records.place, toType, standingOf, fit })}\n`);
    else for (const run of chosen.runs) stdout.write(`${JSON.stringify(factsOf(run))}\n`);
    return 0;
  });
}

const shownRuns = 50;

/** By default the table shows a page, and `--json` all runs. */
function choiceOf({ state, since, target, list, by, label, sort, limit, all, json }: Invocation['options']): RunChoice {
  const isWhole = all === true || json === true;
  return {
    states: state as RunChoice['states'],
    since: since as RunChoice['since'],
    target: target as RunChoice['target'],
    list: list as RunChoice['list'],
    by: by as RunChoice['by'],
    label,
    sort: (sort as RunChoice['sort'] | undefined) ?? 'created',
    limit: (limit as number | undefined) ?? (isWhole ? Number.POSITIVE_INFINITY : shownRuns),
  };
}

function isFiltered({ states, since, target, list, by, label }: RunChoice): boolean {
  return [states, since, target, list, by, label].some((filter) => filter !== undefined);
}

/** The runs as a table. `where`: their source, in words. */
function listText(
  { runs, hasMore }: ChosenRuns,
  {
    choice,
    where,
    toType,
    standingOf,
    fit,
  }: {
    choice: RunChoice;
    where: string;
    toType: ToType;
    standingOf(run: ListedRun): StandingFacts | null;
    fit: TableFit | undefined;
  },
): string {
  if (runs.length === 0 && isFiltered(choice)) return `No run matches. List all: ${toType('runs', '--all')}`;
  if (runs.length === 0)
    return `No runs in ${where}. Start one: ${toType('run', 'FILE', '--resource', anyResource, '--base-url', 'URL')}`;
  const more = hasMore ? ['There are more runs: add --all or a larger --limit.'] : [];
  const hasResults = runs.some(({ resultsWanted }) => resultsWanted);
  const header = ['RUN', 'STATE', 'ROWS', 'PENDING', 'TARGET', 'LIST', ...(hasResults ? ['RESULTS'] : [])];
  const rows = runs.map((run) => [...cellsOf(run, standingOf(run)), ...(hasResults ? [describeResults(run)] : [])]);
  return [columns([header, ...rows], fit), ...more].join('\n');
}

function cellsOf(run: ListedRun, standing: StandingFacts | null): string[] {
  const [first = '', ...others] = run.files;
  const files = others.length > 0 ? `${first} and ${others.length} more` : first;
  const isOfSchedule = run.createdBy.startsWith('schedule '); // these ids also come from a list
  const retry = isOfSchedule ? `${files} and ids of ${run.retryOf}` : `retry of ${run.retryOf}`;
  const list = run.retryOf === '' ? files : retry;
  return [
    run.id,
    stateText(run, standing),
    count(run.rows),
    count(countPending(run)),
    new URL(run.baseUrl).host,
    visibleLine(list),
  ];
}

/**
 * The state, with what holds the run back if the state does not say it: for a halted run the rule, and for a completed run that had failures its exit
 * code.
 */
function stateText(run: ListedRun, standing: StandingFacts | null): string {
  if (run.state === 'halted' && run.halt !== '') return `halted (${causeWords(run.halt)})`;
  if (standing !== null && standing.why !== run.state) return `${run.state} (${heldText(standing, Date.now())})`;
  return run.state === 'completed' && !wentWell(run) ? `completed, exit ${toExitCode(run)}` : run.state;
}

/** `limit until 14:10`, `no worker` */
function heldText({ why, until }: StandingFacts, now: number): string {
  return `${causeWords(why)}${until === null ? '' : ` until ${timeOfDay(Date.parse(until), now)}`}`;
}

async function remove(invocation: Invocation): Promise<number> {
  const { args, options, toType, stdout, stderr } = invocation;
  return withOperations(invocation, 'runs', async (runs) => {
    const run = await runs.find(args[0]);
    requireEndedForRemoval(run);
    await askYes(invocation, `Remove run ${run.id} (${count(run.rows)} rows) from Redis?${lostWith(run)}`);
    const { warnings } = await runs.remove({ run: run.id, seen: run.revision, by: readBy(invocation) });
    stderr.write(`Removed run ${run.id}; ${await describeReportLocation(run)}.\n`);
    writeWarnings(stderr, warnings, toType);
    jsonLines(stdout, options.json)('removed', { run: run.id, rows: run.rows, report: run.reportIn || null });
    return 0;
  });
}

/** Describes what is lost with a run. A run whose list was not written completely has nothing to lose. */
function lostWith(run: Run): string {
  const { state, reportIn, resultsIn } = run;
  if (state === 'preparing' || (resultsIn !== '' && !awaitsResults(run)) || (reportIn !== '' && existsSync(reportIn)))
    return '';
  if (reportIn === '') return ' Its report was not written: what happened to each row is lost with it.';
  return ` Its report is not visible from this machine: ${visibleLine(reportIn)}. Unless it is on another machine, what happened to each row is lost.`;
}
