import { ExpungeError } from '../errors.ts';
import { plural } from '../format.ts';
import { idsIn, readChunks } from '../input/chunk-ids.ts';
import { removeSpool } from '../input/spool.ts';
import type { List } from '../input/with-list.ts';
import { findRunOfList } from '../ledger/create-run.ts';
import { runFolder } from '../ledger/file-retention.ts';
import { findOverlappingRuns } from '../ledger/list-runs.ts';
import { type LeftToWorkers, refuseUnprotected } from '../ledger/protection.ts';
import { isOver, isSealed, type Run, readRun } from '../ledger/run.ts';
import { givenRules } from '../ledger/run-rules.ts';
import { readAbsentAnswers } from '../ledger/semantics.ts';
import { type LimiterScope, readStart } from '../limiter/read-target.ts';
import { readStops, type Stop } from '../limiter/stop.ts';
import { resources, sumIds } from '../model/resource.ts';
import { listOf, type Target } from '../model/target.ts';
import { createFeeder, startDetachedRun } from '../queue/feeder.ts';
import { openQueue, sharedQueueName } from '../queue/queue.ts';
import { deletedText, type Plan } from '../terminal/plan-text.ts';
import { readStopFile } from '../worker/stop-file.ts';
import { type AppliedPlan, confirmPlan, refuseKnownRun, refuseOtherRun, takeOver } from './applied-plan.ts';
import { type Invocation, reasonOf } from './command.ts';
import type { Credentials } from './credentials.ts';
import { deleteInForeground } from './delete-in-foreground.ts';
import { finishEnded, sayDetached } from './finish-run.ts';
import { detachedWarnings, hasForegroundCommand } from './liveness.ts';
import { planOf, showPlan } from './plan.ts';
import { inherit, type Retries, sayRetried } from './retried-run.ts';
import {
  askCount,
  type EarlySession,
  refuseLoneBurst,
  refuseOtherRelease,
  type Session,
  sayOf,
  whoAmI,
  withRedis,
} from './session.ts';
import { refuseFixedRules, submitRun } from './submit-run.ts';

/** `credentials`: null for a detached run that another machine orders. `retries`: the run whose ids these are. `applied`: the sealed plan that is carried out. */
type Work = {
  target: Target;
  credentials: Credentials | null;
  list: List;
  retries: Retries | null;
  applied: AppliedPlan | null;
};

/** Makes or finds the run of a list, asks for confirmation, and deletes it here or detaches it. Repeating it resumes the run. */
export function runList(invocation: Invocation, work: Work): Promise<number> {
  return withRedis(invocation, sayOf(invocation), (session) => runIn(session, invocation, work), true);
}

/** The same with a connection to Redis. */
export async function runIn(session: EarlySession, given: Invocation, work: Work): Promise<number> {
  const { target, credentials, list, retries, applied } = work;
  const retryOf = retries?.run.id ?? '';
  const last = await findRunOfList(session.redis, listOf(target, list.spool.sha256, retryOf));
  if (last !== null && !isOver(last)) refuseOtherRelease(last);
  refuseKnownRun(given, last, applied);
  if (applied !== null) await refuseOtherRun(session, target, applied, last, given);
  const folderOf = ({ id }: Run) => runFolder(given.config.stateDir, id);
  if (last !== null && isSealed(last.state) && !isOver(last))
    return finishEnded({ invocation: given, session, run: last, outputFolder: folderOf(last) });
  if (last !== null && isOver(last) && retries !== null) return sayRetried(given, retries.run, last);
  const existing = last !== null && !isSealed(last.state) ? last : null;
  const invocation = retries === null || existing !== null ? given : inherit(given, retries);
  refuseUnlessResumable(existing);
  if (given.options.detach && existing?.detached !== true)
    await refuseUnprotected(session.redis, target.fp, leftToWorkers(list));
  refuseFixedRules(existing, givenRules(invocation));
  refuseLoneBurst(invocation, existing?.rate ?? null);
  await refuseOtherMode(invocation, session, existing);
  const learned = await readStart(session.redis, target.fp, scopesOf(invocation, list));
  const stop = await stopOf(invocation, session, target);
  const isJoined = existing !== null && (await hasForegroundCommand(session, existing)) === true;
  const overlapping = existing === null ? await findOverlappingRuns(session.redis, target, list.spool, retryOf) : [];
  const proof = await readAbsentAnswers(session.redis, target.fp);
  const plan = planOf(invocation, target, list, {
    retries,
    learned,
    stop,
    proof,
    existing,
    isJoined,
    last,
    overlapping,
  });
  showPlan(invocation, plan);
  await confirm(invocation, plan, applied);
  const accept = async (run: Run) => {
    refuseKnownRun(given, run, applied); // another order may have made it meanwhile
    if (applied !== null) await takeOver(invocation, session, applied, run);
  };
  const run = await submitRun(invocation, session, target, list.spool, { retryOf, applied, accept });
  await removeSpool(list.spool.folder); // the list is in Redis now, and a run may take days
  await refuseOtherMode(invocation, session, run);
  if (run.detached || credentials === null) return detach(invocation, session, run);
  const { workers } = plan.workers;
  return deleteInForeground({ invocation, session, target, credentials, run, workers, outputFolder: folderOf(run) });
}

/** What an earlier reading protected says nothing about now: ids may have been protected since. */
function leftToWorkers({ spool }: List): LeftToWorkers {
  return { isProtected: spool.protectedList !== null, ids: idsIn(readChunks(spool)) };
}

/** The stop that holds back the requests of the run. A stop file is not read for a detached run, whose workers have their own. */
async function stopOf({ config, options }: Invocation, { redis }: Session, target: Target): Promise<Stop | null> {
  const { target: stop } = await readStops(redis, target.fp);
  if (stop !== null || options.detach || config.stopFile === undefined) return stop;
  return readStopFile(config.stopFile, Date.now());
}

function refuseUnlessResumable(existing: Run | null): void {
  if (existing?.state !== 'cancelling') return;
  throw new ExpungeError('USAGE', `run ${existing.id} of the same list is being cancelled`, {
    next: `wait for it: expunge cancel ${existing.id} --yes`,
  });
}

/** A run stays detached or in the foreground, unless `resume --detach` changes that. */
async function refuseOtherMode({ options }: Invocation, session: Session, run: Run | null): Promise<void> {
  const wanted = options.detach === true;
  if (run === null || run.detached === wanted) return;
  const of = `run ${run.id} of the same list`;
  const follow = `expunge status ${run.id} --watch`;
  if (!wanted) {
    throw new ExpungeError('USAGE', `${of} was detached; this command would not wait for it`, {
      next: `follow it: ${follow}; or make sure it runs: the same command with --detach`,
    });
  }
  if ((await hasForegroundCommand(session, run)) === true) {
    throw new ExpungeError('USAGE', `${of} is being deleted by another command in the foreground`, {
      next: `follow it: ${follow}; or stop that command with Ctrl-C, then: expunge resume ${run.id} --detach`,
    });
  }
  throw new ExpungeError('USAGE', `${of} was started in the foreground and is not finished`, {
    next: `detach it: expunge resume ${run.id} --detach; or resume it here: the same command without --detach`,
  });
}

/** The limiters that apply to the requests of the list. */
export function scopesOf({ config }: Invocation, { spool }: List): LimiterScope[] {
  return config.separateLimits ? resources.filter((resource) => spool.ids[resource] > 0) : ['all'];
}

/** The operator types the number of ids left to delete: of a resumed run fewer than the list holds. */
async function confirm(invocation: Invocation, plan: Plan, applied: AppliedPlan | null): Promise<void> {
  const expected = plan.existing?.left ?? sumIds(plan.ids);
  const isUnconfirmed = invocation.options.confirm === undefined;
  if (expected === 0 && applied === null && (isUnconfirmed || plan.existing !== null)) return; // an export that went wrong may hold nothing
  const what = plan.existing ? `the ${plural(expected, 'ids')} left of run ${plan.existing.runId}` : deletedText(plan);
  if (applied !== null) return confirmPlan(invocation, applied, what);
  await askCount(invocation, expected, what);
}

/** Leaves a run to the workers of its target, and warns if none is alive. Repeating it is harmless. */
export async function detach(invocation: Invocation, session: Session, run: Run): Promise<number> {
  const { env, options } = invocation;
  const { redis, ledger, queueConnection } = session;
  const queue = openQueue({ fp: run.fp, name: sharedQueueName, connection: queueConnection });
  try {
    const by = { who: whoAmI(env), reason: reasonOf(options) };
    await startDetachedRun(ledger, createFeeder(ledger, queue), run, by);
    const workers = await queue.workers();
    const now = (await readRun(redis, run.id)) ?? run;
    const { target: stop } = await readStops(redis, run.fp);
    return sayDetached(invocation, now, stop, detachedWarnings(now, workers, stop));
  } finally {
    await queue.close();
  }
}
