import { settingsOfTarget } from '../../config/check-target.ts';
import { plural } from '../../format.ts';
import { countPending, isFinalized, isOver, type Run, readRun } from '../../ledger/run.ts';
import { isSamePerson } from '../../model/person.ts';
import { visibleLine } from '../../model/visible.ts';
import { openReceivers } from '../../notify/receivers.ts';
import { continueApplied, targetOfPlan } from '../../operations/apply-plan.ts';
import { findPlanIn, type PlanAnswer, type PlanFacts } from '../../operations/kept-plan.ts';
import type { ListAction } from '../../operations/list-action.ts';
import { localPlans } from '../../operations/local-plans.ts';
import type { PlanOperations } from '../../operations/operations.ts';
import { type EarlySession, refuseOtherVersion, withRedis } from '../../operations/session.ts';
import { runFolder } from '../../report/file-retention.ts';
import { startProgress } from '../../terminal/live-panel.ts';
import { deletedText } from '../../terminal/plan-text.ts';
import { tokenSource } from '../../token/open-token.ts';
import type { Invocation } from '../command.ts';
import { type Credentials, readCredentials } from '../credentials.ts';
import { askCount, askHost, infoWriter, lineWriter, progressStream, toListAction, whoAmI } from '../session.ts';
import { withOperations } from '../with-operations.ts';
import { deleteInForeground } from './delete-in-foreground.ts';
import { finishEnded, sayDetached } from './finish-run.ts';
import { refuseWorkerFlags } from './run.ts';
import { requireDetach } from './send-list.ts';
import { writeWaiting } from './show-plan.ts';

/**
 * `apply`: shows a plan that waits, asks for the number of ids, and makes its run if everything is still as planned. Then it continues as `run` does:
 * it deletes the ids here, or with --detach leaves them to the workers. Repeating it resumes a run that this person has begun here.
 */
export async function execute(invocation: Invocation): Promise<number> {
  const { config, options } = invocation;
  if (config.server !== undefined) requireDetach(invocation);
  if (!options.detach) {
    const credentials = readCredentials(invocation);
    return withRedis(invocation, infoWriter(invocation), (session) => applyHere(invocation, session, credentials));
  }
  refuseWorkerFlags(invocation);
  return withOperations(invocation, 'plans', async (plans) => {
    const { run, context, warnings } = await applyShown(invocation, plans, await findNamed(invocation, plans));
    return sayDetached(invocation, run, context, warnings);
  });
}

async function findNamed({ args }: Invocation, plans: PlanOperations): Promise<PlanFacts> {
  return findPlanIn(await plans.list(), args[0]!);
}

async function applyHere(invocation: Invocation, session: EarlySession, credentials: Credentials): Promise<number> {
  const { config, env } = invocation;
  const plans = localPlans(session);
  const plan = await findNamed(invocation, plans);
  const target = targetOfPlan(toListAction(invocation), { baseUrl: plan.target, account: plan.account });
  const receivers = openReceivers(config, env);
  const run = (await findBegun(invocation, session, plan)) ?? (await applyShown(invocation, plans, plan)).run;
  const outputFolder = runFolder(config.stateDir, run.id);
  if (isFinalized(run.state)) return finishEnded({ invocation, session, run, outputFolder });
  return deleteInForeground({ invocation, session, target, credentials, receivers, run, outputFolder });
}

/**
 * The unfinished run of a plan that the same person has applied here, once that person has confirmed what is left; null for any other plan. Its ids are
 * in Redis, so that the list is not needed.
 */
async function findBegun(
  invocation: Invocation,
  session: EarlySession,
  { run: id, decided_by: who, target: baseUrl }: PlanFacts,
): Promise<Run | null> {
  const run = id === null ? null : await readRun(session.redis, id);
  if (run === null || run.detached || run.state === 'preparing' || isOver(run)) return null;
  if (!isSamePerson(who!, whoAmI(invocation.env))) return null;
  refuseOtherVersion(run);
  if (isFinalized(run.state)) return run;
  const left = plural(countPending(run), 'ids');
  const why = run.reason && `: ${visibleLine(run.reason)}`;
  lineWriter(invocation.stderr)(`Run ${run.id} of this plan is ${run.state}${why}. It has ${left} left.`);
  await askCount(invocation, countPending(run), `the ${left} left of run ${run.id}`);
  await askHost(invocation, { baseUrl });
  return continueApplied(session, run, toListAction(invocation));
}

/** Shows a plan, asks, and makes its run. */
async function applyShown(invocation: Invocation, plans: PlanOperations, { plan: id }: PlanFacts) {
  const { config, env, options, stderr } = invocation;
  const shown = await plans.show(id);
  const record = options.detach ? shown.record : { ...shown.record, tokenSource: tokenSource(config, env) };
  writeWaiting(invocation, stderr, { ...shown, record });
  await askCount(invocation, shown.confirm, deletedText(shown.record));
  const confirmHost = await askHost(invocation, { baseUrl: shown.target }, shown.protected_host);
  const action = actionFor({ ...invocation, options: { ...options, confirmHost } }, shown);
  const progress = startProgress(progressStream(invocation), env, () => `Reading the list of plan ${id}`);
  return plans.apply(id, action, shown.confirm).finally(() => progress.stop());
}

/** The action for the run of a plan. If no token is sent from here, the plan names the target; settings that name another one are refused. */
function actionFor(invocation: Invocation, { target: baseUrl, account }: PlanAnswer): ListAction {
  const action = toListAction(invocation);
  const place = settingsOfTarget({ baseUrl, account });
  const config = action.config.baseUrl === undefined ? Object.freeze({ ...action.config, ...place }) : action.config;
  return { ...action, config, newRunOnly: true };
}
