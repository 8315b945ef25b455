import { exitCodes } from '../../errors.ts';
import { count, plural } from '../../format.ts';
import { isOver, type Run, readRun } from '../../ledger/run.ts';
import { toExitCode } from '../../ledger/summary.ts';
import { isWorthAnotherRun, outcomes, sumOutcomes } from '../../model/outcome.ts';
import { sumIds } from '../../model/resource.ts';
import { openReceivers } from '../../notify/receivers.ts';
import type { ListAction } from '../../operations/list-action.ts';
import type { Retries } from '../../operations/retried-run.ts';
import { type EarlySession, type Session, withRedis } from '../../operations/session.ts';
import { type FoundList, findList, type ListWork, submitList } from '../../operations/start-list.ts';
import { leaveToWorkers } from '../../operations/steer-run.ts';
import { standingSummary } from '../../operations/take-snapshot.ts';
import { runFolder } from '../../report/file-retention.ts';
import { startProgress } from '../../terminal/live-panel.ts';
import { deletedText, type Plan } from '../../terminal/plan-text.ts';
import type { Invocation } from '../command.ts';
import type { Credentials } from '../credentials.ts';
import { askCount, askHost, infoWriter, lineWriter, progressStream, readBy } from '../session.ts';
import { deleteInForeground } from './delete-in-foreground.ts';
import { finishEnded, sayDetached } from './finish-run.ts';
import { showPlan } from './show-plan.ts';

/** The list and its run. `credentials`: null for a detached run that another machine asks for. */
type Work = ListWork & { action: ListAction; credentials: Credentials | null };

/** Makes or finds the run of a list, asks for confirmation, and deletes it here or detaches it. Repeating it resumes the run. */
export function runList(invocation: Invocation, work: Work): Promise<number> {
  return withRedis(invocation, infoWriter(invocation), (session) => runIn(session, invocation, work), true);
}

/** Does the same over an open connection to Redis. */
export async function runIn(session: EarlySession, given: Invocation, work: Work): Promise<number> {
  const { target, credentials, retries } = work;
  const receivers = given.options.detach ? [] : openReceivers(given.config, given.env);
  const folderOf = ({ id }: Run) => runFolder(given.config.stateDir, id);
  const known = await findList(session, work.action, work);
  if (known.ended !== null) {
    const { ended: run } = known;
    if (isOver(run) && retries !== null) return sayRetried(given, retries.run, run);
    return finishEnded({ invocation: given, session, run, outputFolder: folderOf(run) });
  }
  showPlan(given, known.plan);
  await confirm(given, known.plan);
  const confirmHost = await askHost(given, target);
  const action = { ...known.action, options: { ...known.action.options, confirmHost } };
  const run = await submit(given, session, { ...known, action }, work);
  if (run.detached || credentials === null) return detach(given, session, run);
  const invocation = { ...given, config: known.action.config };
  const outputFolder = folderOf(run);
  return deleteInForeground({ invocation, session, target, credentials, receivers, run, outputFolder });
}

/** Writes the list to Redis as a run, and shows the progress. */
export async function submit(invocation: Invocation, session: Session, known: FoundList, work: ListWork): Promise<Run> {
  let ids = 0;
  const text = () => `Writing the list to Redis: ${count(ids)} ids`;
  const progress = startProgress(progressStream(invocation), invocation.env, text);
  const onProgress = (written: number) => {
    ids = written;
  };
  return submitList(session, known, work, onProgress).finally(() => progress.stop());
}

/** Asks the operator to type the number of ids left to delete: for a resumed run, fewer than the list holds. */
async function confirm(invocation: Invocation, plan: Plan): Promise<void> {
  const expected = plan.existing?.left ?? sumIds(plan.ids);
  const isUnconfirmed = invocation.options.confirm === undefined;
  if (expected === 0 && (isUnconfirmed || plan.existing !== null)) return; // a failed export may be empty
  const what = plan.existing ? `the ${plural(expected, 'ids')} left of run ${plan.existing.runId}` : deletedText(plan);
  await askCount(invocation, expected, what);
}

/** Leaves a run to the workers of its target, and warns if none is alive. Repeating it is harmless. */
async function detach(invocation: Invocation, session: Session, run: Run): Promise<number> {
  const { context, warnings } = await leaveToWorkers(session, run, readBy(invocation));
  const now = (await readRun(session.redis, run.id)) ?? run;
  return sayDetached(invocation, now, context, warnings);
}

/** Reports that the ids were retried by a run that is over, and returns its exit code: a repeated command sends nothing twice. */
function sayRetried(invocation: Invocation, { id }: Retries['run'], retry: Run): number {
  const parts = outcomes.filter((outcome) => retry.counts[outcome] > 0);
  const sums = parts.map((outcome) => `${count(retry.counts[outcome])} ${outcome}`).join(', ');
  const isLeft = sumOutcomes(retry.counts, isWorthAnotherRun) > 0;
  lineWriter(invocation.stderr)(
    `These ids of run ${id} were retried by run ${retry.id}, which is ${retry.state}: ${sums}. Nothing is sent.`,
  );
  if (isLeft) infoWriter(invocation)(`  Retry what that one left: ${invocation.toType('retry', retry.id)}`);
  const exit = toExitCode(retry) ?? exitCodes.OK.exit;
  if (invocation.options.json)
    invocation.stdout.write(`${JSON.stringify(standingSummary(retry, null, { toType: invocation.toType, exit }))}\n`);
  return exit;
}
