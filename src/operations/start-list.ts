import { ExpungeError } from '../errors.ts';
import { isoTime } from '../format.ts';
import { readChunks, sendableIds } from '../input/chunk-ids.ts';
import { removeSpool } from '../input/spool.ts';
import type { List } from '../input/with-list.ts';
import { readNextAttempt } from '../ledger/backlog.ts';
import { changedSince } from '../ledger/changed-since.ts';
import { findRunOfList } from '../ledger/create-run.ts';
import { findOverlappingRuns } from '../ledger/list-runs.ts';
import { type LeftToWorkers, refuseUnprotected } from '../ledger/protection.ts';
import { isFinalized, isOver, type Run } from '../ledger/run.ts';
import { givenRules } from '../ledger/run-rules.ts';
import { readAbsentAnswers } from '../ledger/semantics.ts';
import { hashList, type Target } from '../model/target.ts';
import type { Advice, ToType } from '../model/to-type.ts';
import type { Plan } from '../terminal/plan-text.ts';
import { readStopFile } from '../worker/stop-file.ts';
import { type AppliedPlan, refuseKnownRun, refuseRunSince, takeOver } from './applied-plan.ts';
import type { ListAction } from './list-action.ts';
import { hasForegroundCommand } from './liveness.ts';
import { type ListHistory, makeListPlan } from './plan-list.ts';
import { readBeforeRun } from './read-bounds.ts';
import { inherit, type Retries } from './retried-run.ts';
import { refuseOtherVersion, type Session } from './session.ts';
import { leaveToWorkers } from './steer-run.ts';
import { refuseFixedRules, submitRun } from './submit-run.ts';
import { requireTypedHost } from './typed-host.ts';

/** A list that was read, and where it is deleted. `retries`: the run whose ids are sent again. `applied`: the sealed plan that is carried out. */
export type ListWork = { target: Target; list: List; retries: Retries | null; applied: AppliedPlan | null };

/** The action as it applies to the run, with the settings of a retried run; the run to resume, if any; and the plan that a person is shown. */
export type FoundList = { action: ListAction; existing: Run | null; plan: Plan };

/** The facts about a list. `ended`: its run has ended, and the action sends nothing. */
export type KnownList = { ended: Run } | ({ ended: null } & FoundList);

/** Finds the run of a list, and what to show about it. Only reads. Throws USAGE and GUARD if the action cannot be for that run. */
export async function findList(session: Session, given: ListAction, work: ListWork): Promise<KnownList> {
  const { redis } = session;
  const { target, list, retries, applied } = work;
  const retryOf = retries?.run.id ?? '';
  const last = await findRunOfList(redis, hashList(target, list.spool.sha256, retryOf));
  if (last !== null && !isOver(last)) refuseOtherVersion(last);
  refuseKnownRun(given, last, applied);
  if (applied !== null) refuseRunSince(applied, last);
  if (last !== null && isFinalized(last.state) && (!isOver(last) || retries !== null)) return { ended: last };
  const existing = last !== null && !isFinalized(last.state) ? last : null;
  const action = retries === null || existing !== null ? given : inherit(given, retries);
  refuseCancelling(existing);
  if (given.options.detach && existing?.detached !== true)
    await refuseUnprotected(redis, target.fp, leftToWorkers(list));
  refuseFixedRules(existing, givenRules(action));
  await refuseOtherMode(action, session, existing);
  const history = await readHistory(session, action, work, last);
  const plan = makeListPlan(action, target, list, history);
  const refusal = explainStopBeforeStart(plan);
  if (refusal !== null) throw refusal;
  return { ended: null, action, existing, plan };
}

/** The error for a new run that would be paused before it starts; null if it is none. */
export function explainStopBeforeStart({ existing, stopAt, work: { startsAt } }: Plan): ExpungeError | null {
  if (existing !== null || stopAt === 0 || stopAt > startsAt) return null;
  const words = `--stop-at ${isoTime(stopAt)} comes before the start of the run at ${isoTime(startsAt)}; nothing was sent`;
  return new ExpungeError('USAGE', words, { next: 'give a later --stop-at, or none' });
}

/** What Redis knows about a list whose last run is this one, for people. Only reads. */
async function readHistory(
  session: Session,
  action: ListAction,
  { target, list, retries }: Omit<ListWork, 'applied'>,
  last: Run | null,
): Promise<ListHistory> {
  const { redis } = session;
  const existing = last !== null && !isFinalized(last.state) ? last : null;
  const before = await readBeforeRun(redis, target.fp, await ownStop(action));
  const isJoined = existing !== null && (await hasForegroundCommand(session, existing)) === true;
  const retryOf = retries?.run.id ?? '';
  const overlapping = existing === null ? await findOverlappingRuns(redis, target, list.spool, retryOf) : [];
  const nextTryAt = existing === null ? null : await readNextAttempt(redis, existing.id);
  const proof = await readAbsentAnswers(redis, target.fp);
  return { retries, ...before, nextTryAt, proof, existing, isJoined, last, overlapping };
}

/**
 * Writes the list to Redis as a run, or completes or takes the run that was shown, and removes the list. Throws GUARD if that run has moved since.
 * `onProgress`: called with the number of ids written.
 */
export async function submitList(
  session: Session,
  { action, existing }: FoundList,
  { target, list: { spool }, retries, applied }: ListWork,
  onProgress: (ids: number) => void,
): Promise<Run> {
  requireTypedHost(action.config, target, action.options.confirmHost);
  const accept = async (run: Run) => {
    refuseKnownRun(action, run, applied); // another action may have made a run in the meantime
    refuseUnseenStop(existing, run);
    if (applied !== null) await takeOver(action, session, applied, run);
  };
  const submission = { retryOf: retries?.run.id ?? '', applied, accept, onProgress };
  const run = await submitRun(session, action, { target, spool }, submission);
  await removeSpool(spool.folder); // the list is in Redis now, and a run may take days
  await refuseOtherMode(action, session, run);
  return run;
}

/**
 * Makes a run of a list, leaves it to the workers if the action is detached, and returns it with its warnings. Asks nothing: the person who asks for
 * it has seen the plan.
 */
export async function startList(
  session: Session,
  action: ListAction,
  work: ListWork,
): Promise<{ run: Run; warnings: Advice[] }> {
  const known = await findList(session, action, work);
  if (known.ended !== null) return { run: known.ended, warnings: [] };
  const run = await submitList(session, known, work, () => {});
  if (!run.detached) return { run, warnings: [] };
  const { warnings } = await leaveToWorkers(session, run, action.by);
  return { run, warnings };
}

/**
 * Throws GUARD for a run that has changed since the plan was shown: its stop has not been seen by the person who confirmed. A run that did not exist,
 * or was still being written, was not shown; in that case only a halt or a guard must be seen first.
 */
function refuseUnseenStop(shown: Run | null, run: Run): void {
  if (run.state === 'running' || isFinalized(run.state)) return;
  const wasStopped = run.state === 'halted' || (run.state === 'paused' && run.by === 'guard');
  const hasMoved = shown === null || shown.state === 'preparing' ? wasStopped : run.revision !== shown.revision;
  if (hasMoved) throw changedSince(run, shown, 'sent');
}

/** The list as it is left to workers. An earlier check for protected ids does not count: ids may have been protected since. */
function leftToWorkers({ spool }: List): LeftToWorkers {
  return { isProtected: spool.protectedList !== null, ids: sendableIds(readChunks(spool)) };
}

/** The stop file of this process. It is not read for a detached run, whose workers have their own. */
async function ownStop({ config, options }: ListAction) {
  if (options.detach || config.stopFile === undefined) return null;
  return readStopFile(config.stopFile, Date.now());
}

function refuseCancelling(existing: Run | null): void {
  if (existing?.state !== 'cancelling') return;
  throw new ExpungeError('USAGE', `run ${existing.id} of the same list is being cancelled`, {
    next: (toType) => `wait for it: ${toType('cancel', existing.id, '--yes')}`,
  });
}

/** Throws for the wrong mode: a run stays detached or in the foreground, unless `resume --detach` changes that. */
async function refuseOtherMode({ options }: ListAction, session: Session, run: Run | null): Promise<void> {
  const wanted = options.detach === true;
  if (run === null || run.detached === wanted) return;
  const of = `run ${run.id} of the same list`;
  const follow = (toType: ToType) => `follow it: ${toType('status', run.id, '--watch')}`;
  if (!wanted) {
    throw new ExpungeError('USAGE', `${of} belongs to the workers (--detach)`, {
      next: (toType) => `${follow(toType)}; or make sure it runs: the same command with --detach`,
    });
  }
  if ((await hasForegroundCommand(session, run)) === true) {
    throw new ExpungeError('USAGE', `${of} is being deleted by another command in the foreground`, {
      next: (toType) =>
        `${follow(toType)}; or stop that command with Ctrl-C, then: ${toType('resume', run.id, '--detach')}`,
    });
  }
  throw new ExpungeError('USAGE', `${of} was started in the foreground and is not finished`, {
    next: (toType) =>
      `detach it: ${toType('resume', run.id, '--detach')}; or resume it here: the same command without --detach`,
  });
}
