import { setTimeout as sleep } from 'node:timers/promises';
import { ExpungeError } from '../errors.ts';
import { plural, timeOfDay, utcTime } from '../format.ts';
import { auditFacts, readAudit } from '../ledger/audit.ts';
import { keptMsOf } from '../ledger/end-run.ts';
import { haltExamples } from '../ledger/halt-rules.ts';
import { eventFacts, pointFacts, readHistory } from '../ledger/history.ts';
import { readMeasures } from '../ledger/measures.ts';
import { awaitsResults } from '../ledger/results.ts';
import { activeMsOf, isSealed, type Run, readRun } from '../ledger/run.ts';
import { exitOf, summaryOf } from '../ledger/summary.ts';
import { sealTally } from '../ledger/tally.ts';
import { haltRules } from '../ledger/thresholds.ts';
import { isWorthAnotherRun, sumOutcomes } from '../model/outcome.ts';
import type { RedisClient } from '../redis/client.ts';
import { LivePanel } from '../terminal/live-panel.ts';
import { paceLines, paceSummary } from '../terminal/pace.ts';
import { panelText } from '../terminal/panel.ts';
import { retryLines } from '../terminal/retry-text.ts';
import { plainLine, styleOf } from '../terminal/style.ts';
import { auditText } from '../terminal/target-events.ts';
import { type Invocation, jsonLines } from './command.ts';
import { listenForInterrupts } from './interrupts.ts';
import { isAbandoned, withStandstill } from './liveness.ts';
import { describeReportLocation, describeResults } from './report-location.ts';
import { findRun, progressOn, type Session, sayOf, withRedis } from './session.ts';
import { readRunContext, SnapshotTaker } from './take-snapshot.ts';
import { targetStatus } from './target-status.ts';

const pollMs = 250;

/**
 * Shows the progress of a run, once or until it ends; without a run, the state of the target. Returns 0 for a run that failed, too: its
 * counts say how it went.
 */
export async function execute(invocation: Invocation): Promise<number> {
  const { args, options, stdout, verbosity } = invocation;
  refuseHistoryAsText(invocation);
  if (args.length === 0) refuseUnlessTarget(invocation);
  return withRedis(invocation, options.json ? () => {} : sayOf(invocation), async (session) => {
    if (args.length === 0) return targetStatus(invocation, session);
    const found = await findRun(session, args[0]);
    const run = options.watch ? await watch(invocation, session, found) : await tallied(session, found);
    if (options.json) await writeJson(invocation, session, run);
    else if (!options.watch || verbosity === 'quiet') stdout.write(`${await statusText(session, run, invocation)}\n`);
    return 0;
  });
}

async function tallied({ redis }: Session, run: Run): Promise<Run> {
  return isSealed(run.state) ? sealTally(redis, run) : run;
}

function refuseHistoryAsText({ args, options }: Invocation): void {
  if (!options.history || (options.json && args.length > 0)) return;
  throw new ExpungeError('USAGE', '--history prints JSON about one run', {
    next: 'expunge status RUN --json --history; to read it: expunge report RUN --format html --output report.html',
  });
}

function refuseUnlessTarget({ config, options }: Invocation): void {
  if (config.baseUrl !== undefined && !options.watch) return;
  throw new ExpungeError('USAGE', 'expected a run, got none', {
    next: 'expunge runs lists them; expunge status --base-url URL shows the state of a target',
  });
}

/** With --audit and --history their entries come first, one a line; the last line is the summary, as everywhere. */
async function writeJson({ options, stdout }: Invocation, session: Session, run: Run): Promise<void> {
  const print = jsonLines(stdout, true);
  if (options.audit)
    for (const entry of await readAudit(session.redis, run)) print('audit', { run: run.id, ...auditFacts(entry) });
  if (options.history) {
    const { points, events } = await readHistory(session.redis, run);
    for (const point of points) print('point', { run: run.id, ...pointFacts(point) });
    for (const event of events) print('event', { run: run.id, ...eventFacts(event) });
  }
  const { stops, refused, isAbandoned } = await readContext(session, run);
  const shown = withStandstill(run, stops.target, { refused, isAbandoned });
  stdout.write(`${JSON.stringify(summaryOf(shown, exitOf(run), Date.now()))}\n`);
}

/** What explains the pace of a run that other processes delete, and whether its command has ended. */
async function readContext(session: Session, run: Run) {
  const [context, abandoned] = await Promise.all([readRunContext(session.redis, run), isAbandoned(session, run)]);
  return { ...context, isAbandoned: abandoned };
}

const shownActions = 3;

/** The whole trail, or its last few entries. */
async function auditLines({ redis }: Session, run: Run, isWhole: boolean, isQuiet: boolean): Promise<string[]> {
  const trail = await readAudit(redis, run);
  if (isWhole) return auditText(trail);
  const hidden = Math.max(0, trail.length - 1 - shownActions); // the first one, the submission, has a line of its own
  const how = isQuiet ? '' : `: expunge status ${run.id} --audit`;
  const more = hidden > 0 ? [`${plural(hidden, 'earlier actions')}${how}`] : [];
  return [...more, ...auditText(trail, Math.min(shownActions, trail.length - 1))];
}

async function statusText(session: Session, run: Run, { options, stdout, verbosity }: Invocation): Promise<string> {
  const { redis } = session;
  const isQuiet = verbosity === 'quiet';
  const examples = await haltExamples(redis, run, haltRules);
  const taker = new SnapshotTaker(run, null);
  const context = await readContext(session, run);
  taker.observeContext(context);
  // Shown once, so nothing is cut off: a reason may be longer than a line.
  const panel = panelText(taker.take(), Number.POSITIVE_INFINITY, styleOf(stdout));
  const lines = [
    ...(context.isAbandoned && !isQuiet
      ? [`resume: ${run.command}`, `or detach it: expunge resume ${run.id} --detach`]
      : []),
    ...doubt(run),
    ...(examples.length > 0 ? [`for example: ${examples.map(plainLine).join('  ')}`] : []),
    ...(run.priority === 'normal' ? [] : [`priority ${run.priority}`]),
    ...(run.onStatus ? [`on status: ${run.onStatus.replaceAll(',', ', ')}`] : []),
    ...retryLines(run),
    ...(isQuiet ? [] : retryAdvice(run)),
    ...(await pace(redis, run)),
    `submitted by ${run.createdBy}${run.note ? `, because: ${run.note}` : ''}`,
    ...results(run),
    ...(await expiry(run, isQuiet)),
    ...(await auditLines(session, run, options.audit === true, isQuiet)),
  ];
  return [panel, ...lines.map((line) => `  ${line}`)].join('\n');
}

/** How to go on with a run that has ended and that nobody retried. */
function retryAdvice({ id, state, counts, retriedBy }: Run): string[] {
  const isDone = !isSealed(state) || retriedBy.length > 0 || sumOutcomes(counts, isWorthAnotherRun) === 0;
  return isDone ? [] : [`retry the others: expunge retry ${id}`];
}

/** How fast a run was that has ended. */
async function pace(redis: RedisClient, run: Run): Promise<string[]> {
  if (!isSealed(run.state)) return [];
  return paceLines(paceSummary(await readMeasures(redis, run.id), activeMsOf(run, Date.now())));
}

/** Why ids that are gone may not be recorded as absent. */
function doubt({ doubt, doubtSince }: Run): string[] {
  return doubtSince > 0 ? [`in doubt since ${timeOfDay(doubtSince, Date.now())}: ${plainLine(doubt)}`] : [];
}

function results(run: Run): string[] {
  const where = describeResults(run);
  return where === '' ? [] : [`results: ${where}`];
}

/** How long Redis keeps an ended run, and the state folder its report, if this machine has it. */
async function expiry(run: Run, isQuiet: boolean): Promise<string[]> {
  if (!isSealed(run.state)) return [];
  const from = awaitsResults(run) ? run.endedAt : Math.max(run.endedAt, run.resultsAt);
  const forgets = `Redis forgets it on ${utcTime(from + keptMsOf(run), 'day')}`;
  if (run.reportIn !== '') return [`${forgets}; ${await describeReportLocation(run)}`];
  if (run.resultsAt > 0 && !awaitsResults(run)) return [forgets];
  const keep = isQuiet ? '' : `; to keep that: expunge report ${run.id} --output FILE`;
  return [`${forgets}, and what happened to each row${keep}`];
}

async function watch(invocation: Invocation, session: Session, run: Run): Promise<Run> {
  const taker = new SnapshotTaker(run, null);
  const panel = new LivePanel(progressOn(invocation), invocation.env, () => taker.take());
  const interrupts = listenForInterrupts(invocation, () => {});
  let last = run;
  panel.start();
  while (!interrupts.signal.aborted && !isSealed(last.state)) {
    const now = await readRun(session.redis, run.id).catch(() => undefined);
    taker.observe(now);
    taker.observeContext(await readContext(session, last).catch(() => undefined));
    if (now === null) break;
    last = now ?? last;
    await sleep(pollMs, undefined, { signal: interrupts.signal }).catch(() => {});
  }
  last = await tallied(session, last);
  taker.observe(last);
  panel.stop();
  interrupts.dispose();
  return last;
}
