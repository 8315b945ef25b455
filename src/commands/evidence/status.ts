import { ExpungeError } from '../../errors.ts';
import { plural, timeOfDay, utcTime } from '../../format.ts';
import { auditFacts } from '../../ledger/audit.ts';
import { describeBodies } from '../../ledger/bodies.ts';
import { judgeRun } from '../../ledger/conclusion.ts';
import { keepTimeMs } from '../../ledger/end-run.ts';
import { haltExampleText, haltSelection } from '../../ledger/halt-examples.ts';
import { awaitsResults } from '../../ledger/results.ts';
import { isFinalized, type Run, sumActiveMs } from '../../ledger/run.ts';
import { ruleText } from '../../ledger/run-rules.ts';
import { standingText } from '../../ledger/standing.ts';
import { toExitCode } from '../../ledger/summary.ts';
import { isWorthAnotherRun, sumOutcomes } from '../../model/outcome.ts';
import type { ToType } from '../../model/to-type.ts';
import { visibleLine } from '../../model/visible.ts';
import type { RecordOperations } from '../../operations/operations.ts';
import type { RunRecord } from '../../operations/run-record.ts';
import { SnapshotTaker, standingSummary } from '../../operations/take-snapshot.ts';
import { LivePanel } from '../../terminal/live-panel.ts';
import { paceLines, paceSummary } from '../../terminal/pace.ts';
import { wholePanelText } from '../../terminal/panel.ts';
import { retryLines } from '../../terminal/retry-text.ts';
import type { Snapshot } from '../../terminal/snapshot.ts';
import { isTerminal, styleOf, wrapWhole } from '../../terminal/style.ts';
import { auditText } from '../../terminal/target-events.ts';
import { sleepUntilAborted } from '../../wait.ts';
import { type Invocation, jsonLines } from '../command.ts';
import { listenForInterrupts } from '../interrupts.ts';
import { progressStream } from '../session.ts';
import { withOperations } from '../with-operations.ts';
import { describeReportLocation, describeResults } from './report-location.ts';
import { targetStatus } from './target-status.ts';

/**
 * Shows the progress of a run, once or until it ends, halts or is paused; without a run, the state of the target. Returns 0 for a failed run as well:
 * its counts show that. With --watch it returns the exit code of the run that it has seen end.
 */
export async function execute(invocation: Invocation): Promise<number> {
  const { args } = invocation;
  requireJsonForHistory(invocation);
  if (args.length > 0)
    return withOperations(invocation, 'records', async (records) =>
      showRun(invocation, await records.find(args[0]), records),
    );
  requireRunOrTarget(invocation);
  return targetStatus(invocation);
}

/** Prints the known facts of a run; with --watch once it has ended. */
async function showRun(invocation: Invocation, found: Run, records: RecordOperations): Promise<number> {
  const { options, stdout, stderr, env, verbosity } = invocation;
  const last = options.watch ? await watch(invocation, records, found) : found;
  if (options.json) await writeJson(invocation, await records.record(last), records);
  else if (!options.watch || verbosity === 'quiet' || !isTerminal(stderr, env))
    stdout.write(`${await statusText(await records.record(last), invocation)}\n`);
  return options.watch && isAtRest(last) ? (toExitCode(last) ?? 0) : 0;
}

function requireJsonForHistory({ args, options }: Invocation): void {
  if (!options.history || (options.json && args.length > 0)) return;
  throw new ExpungeError('USAGE', '--history prints JSON about one run', {
    next: (toType) =>
      `${toType('status', 'RUN', '--json', '--history')}; to read it: ${toType('report', 'RUN', '--format', 'html', '--output', 'report.html')}`,
  });
}

function requireRunOrTarget({ config, options }: Invocation): void {
  if (config.baseUrl !== undefined && !options.watch) return;
  throw new ExpungeError('USAGE', 'expected a run, got none', {
    next: (toType) =>
      `${toType('runs')} lists them; ${toType('status', '--base-url', 'URL')} shows the state of a target`,
  });
}

/** Writes JSON. With --audit and --history their entries come first, one per line; the last line is the summary, as everywhere. */
async function writeJson(
  { options, toType, stdout }: Invocation,
  record: RunRecord,
  records: RecordOperations,
): Promise<void> {
  const { run, context, audit, examples } = record;
  const print = jsonLines(stdout, true);
  if (options.audit) for (const entry of audit) print('audit', { run: run.id, ...auditFacts(entry) });
  if (options.history) {
    const { points, events } = await records.history(run);
    for (const point of points) print('point', { run: run.id, ...point });
    for (const event of events) print('event', { run: run.id, ...event });
  }
  const summary = standingSummary(run, context, { toType });
  stdout.write(`${JSON.stringify({ ...summary, examples })}\n`);
}

const shownActions = 3;

/** The whole trail, or its last few entries. */
function auditLines({ run, audit }: RunRecord, { options, toType, verbosity }: Invocation): string[] {
  if (options.audit === true) return auditText(audit);
  const hidden = Math.max(0, audit.length - 1 - shownActions); // the first entry, the submission, has its own line
  const how = verbosity === 'quiet' ? '' : `: ${toType('status', run.id, '--audit')}`;
  const more = hidden > 0 ? [`${plural(hidden, 'earlier actions')}${how}`] : [];
  return [...more, ...auditText(audit, Math.min(shownActions, audit.length - 1))];
}

async function statusText(record: RunRecord, invocation: Invocation): Promise<string> {
  const { toType, stdout, env, verbosity } = invocation;
  const { run, context, proof } = record;
  const isQuiet = verbosity === 'quiet';
  const taker = new SnapshotTaker(run, null, invocation.toType);
  taker.observeContext(context);
  const width = isTerminal(stdout, env) ? stdout.columns : Number.POSITIVE_INFINITY;
  const snapshot = taker.take();
  const panel = wholePanelText(isQuiet ? { ...snapshot, advice: '' } : snapshot, width, styleOf(stdout));
  const lines = [
    ...(context.isAbandoned && !isQuiet ? [`or detach it: ${toType('resume', run.id, '--detach')}`] : []),
    ...alsoHeld(snapshot, width - 2),
    ...describeBodies(run.bodies),
    ...proof.map(visibleLine),
    ...doubt(run),
    ...haltLines(record, invocation),
    ...(run.onStatus ? [`on status: ${run.onStatus.replaceAll(',', ', ')}`] : []),
    ...retryLines(run),
    ...(isQuiet ? [] : [...absenceAdvice(run, toType), ...retryAdvice(run, toType)]),
    ...pace(record),
    ...(run.labels === '' ? [] : [`labels: ${visibleLine(ruleText(run, 'labels'))}`]),
    `submitted by ${run.createdBy}${run.note ? `, because: ${run.note}` : ''}`,
    ...results(run),
    ...(await expiry(run, invocation)),
    ...auditLines(record, invocation),
  ];
  return [panel, ...lines.map((line) => `  ${line}`)].join('\n');
}

/** The other causes that hold the run back, once the first one is gone. */
function alsoHeld({ standings, at }: Snapshot, width: number): string[] {
  const words = standings.slice(1).map((standing) => `then: ${visibleLine(standingText(standing, at))}`);
  return words.flatMap((text) => wrapWhole(text, width - 2).map((line, n) => (n === 0 ? line : `  ${line}`)));
}

/** A few ids that show why a run halted, and the command that shows all of them. */
function haltLines({ run, examples }: RunRecord, { toType, verbosity }: Invocation): string[] {
  const behind = haltSelection(run);
  if (examples.length === 0) return [];
  const all =
    verbosity === 'quiet' || behind === '' ? [] : [`all of them: ${toType('report', run.id, '--only', behind)}`];
  return ['for example:', ...examples.map((example) => `  ${visibleLine(haltExampleText(example))}`), ...all];
}

/** Advice about a run that found none of its ids. The runs of a schedule have no command, and the command of a plan sets no rule. */
function absenceAdvice(run: Run, toType: ToType): string[] {
  if (judgeRun(run) !== 'none_there') return [];
  const again =
    run.plan === '' ? run.command && `${run.command} --expect-absent` : toType('plan', 'FILE', '--expect-absent');
  const expect = again === '' ? [] : [`if its ids may be gone: ${again}`];
  return ['check --base-url, --account, --resource and --column', ...expect];
}

/** The command that retries an ended run, unless it was retried. */
function retryAdvice({ id, state, counts, retriedBy }: Run, toType: ToType): string[] {
  const isDone = !isFinalized(state) || retriedBy.length > 0 || sumOutcomes(counts, isWorthAnotherRun) === 0;
  return isDone ? [] : [`retry the others: ${toType('retry', id)}`];
}

/** The speed of an ended run. */
function pace({ run, measures }: RunRecord): string[] {
  return isFinalized(run.state) ? paceLines(paceSummary(measures, sumActiveMs(run, Date.now()))) : [];
}

/** The reason why ids that are gone cannot be recorded as absent. */
function doubt({ doubt, doubtSince }: Run): string[] {
  return doubtSince > 0 ? [`in doubt since ${timeOfDay(doubtSince, Date.now())}: ${visibleLine(doubt)}`] : [];
}

function results(run: Run): string[] {
  const where = describeResults(run);
  return where === '' ? [] : [`results: ${where}`];
}

/** How long Redis keeps an ended run, and the state folder its report if this machine has it. */
async function expiry(run: Run, { toType, verbosity }: Invocation): Promise<string[]> {
  if (!isFinalized(run.state)) return [];
  const from = awaitsResults(run) ? run.endedAt : Math.max(run.endedAt, run.resultsAt);
  const forgets = `Redis forgets it on ${utcTime(from + keepTimeMs(run), 'day')}`;
  if (run.reportIn !== '') return [`${forgets}; ${await describeReportLocation(run)}`];
  if (run.resultsAt > 0 && !awaitsResults(run)) return [forgets];
  const keep = verbosity === 'quiet' ? '' : `; to keep that: ${toType('report', run.id, '--output', 'FILE')}`;
  return [`${forgets}, and what happened to each row${keep}`];
}

/** Whether the run has ended, or does nothing until an operator acts. */
function isAtRest({ state }: Run): boolean {
  return isFinalized(state) || state === 'halted' || state === 'paused';
}

async function watch(invocation: Invocation, records: RecordOperations, run: Run): Promise<Run> {
  const taker = new SnapshotTaker(run, null, invocation.toType);
  const panel = new LivePanel(progressStream(invocation), invocation.env, () => taker.take());
  const interrupts = listenForInterrupts(invocation, () => {});
  let last = run;
  panel.start();
  try {
    while (!interrupts.signal.aborted && !isAtRest(last)) {
      const seen = await records.look(last);
      taker.observe(seen.run, records.away);
      taker.observeContext(seen.context);
      if (seen.run === null) break;
      last = seen.run ?? last;
      await sleepUntilAborted(records.pollMs, interrupts.signal);
    }
    if (isFinalized(last.state)) last = (await records.record(last)).run;
    taker.observe(last);
  } finally {
    panel.stop();
    interrupts.dispose();
  }
  return last;
}
