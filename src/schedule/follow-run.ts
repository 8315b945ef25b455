import { ExpungeError } from '../errors.ts';
import { noteCompleted, removeIfUnstarted } from '../ledger/end-run.ts';
import { isSealed, type Run, readRun, schemaVersion } from '../ledger/run.ts';
import { sealTally } from '../ledger/tally.ts';
import { isFailure, isGone, isSuccess, type Outcome, sumOutcomes } from '../model/outcome.ts';
import { startDetachedRun } from '../queue/feeder.ts';
import { type ListFacts, type ListRejection, protectedChange } from './guards.ts';
import { leaseSchedule, type ScheduleLease } from './lease.ts';
import { evaluateList, linkRetried, type MakeRunResult, madeBy, makeRun } from './make-run.ts';
import { type Schedule, settingsOf, withEnd } from './schedule.ts';
import { readHistory, readSchedule, type ScheduleDeps, updateSchedule } from './schedule-store.ts';
import { withSlotList } from './slot-list.ts';

/** Removes a run that a killed or hanging process wrote and never started. Repeating it is harmless. */
export async function removeUnstartedRun(
  { ledger: { redis } }: ScheduleDeps,
  lease: ScheduleLease,
  { preparing, lastRun }: Schedule,
): Promise<void> {
  if (preparing === '' || preparing === lastRun) return;
  // Without the lease, another process may be writing it now.
  if ((await updateSchedule(redis, lease, {})) !== 'done') return;
  const run = await readRun(redis, preparing);
  // A process that hangs may still write it. The next run of the schedule takes its place in `preparing`.
  if (run === null) return;
  await removeIfUnstarted(redis, run, madeBy(lease.name));
  await updateSchedule(redis, lease, { fields: { preparing: '' } });
}

/**
 * Starts the last run if a crash left it unstarted, or records how it ended. Its files are archived only if it completed, and what it left is
 * retried by the next slot, which has those ids from its ledger: read again, the files would only send all others once more.
 */
export async function follow(
  deps: ScheduleDeps,
  lease: ScheduleLease,
  schedule: Schedule,
  last: Run | null,
): Promise<void> {
  const { redis } = deps.ledger;
  if (last === null) {
    await updateSchedule(redis, lease, { fields: { lastState: 'lost', lastEndedAt: deps.now(), toArchive: '' } });
    return;
  }
  if (last.schema !== schemaVersion) return; // left to the release that wrote it
  if (last.state === 'planned') {
    await linkRetried(deps, last);
    return startDetachedRun(deps.ledger, deps.feeder, last, { who: last.createdBy, reason: '' });
  }
  const { id, state, counts } = await sealTally(redis, last);
  const left = sumOutcomes(counts, (outcome) => !isSuccess(outcome));
  const ended = { state, deleted: counts.deleted, gone: sumOutcomes(counts, isGone), left };
  const history = withEnd(await readHistory(redis, lease.fp, lease.name), id, ended);
  const isRetried = (outcome: Outcome) => schedule.retryFailed && isFailure(outcome);
  const lost = sumOutcomes(counts, (outcome) => !isSuccess(outcome) && !isRetried(outcome));
  const ofFiles = state === 'completed' && lost === 0 ? {} : { toArchive: '' };
  const ofHeartbeat = state === 'completed' && left === 0 ? { heartbeatDue: deps.now() } : {};
  if (state === 'completed') await noteCompleted(redis, lease.fp, lease.name, last.endedAt);
  await updateSchedule(redis, lease, {
    fields: { lastState: state, lastEndedAt: last.endedAt, ...ofFiles, ...ofHeartbeat },
    history,
  });
}

/**
 * Makes a run of a schedule on request, also of a paused one. The guards apply, but a rejection does not pause the schedule. Throws USAGE
 * while its last run has not ended, and while another process holds its lease.
 */
export async function runNow(deps: ScheduleDeps, name: string, stop: AbortSignal): Promise<MakeRunResult> {
  const lease = await leaseSchedule(deps.ledger.redis, deps.target.fp, name, stop);
  if (lease === null) {
    throw new ExpungeError('USAGE', `schedule ${name}: another process is making a run of it now`, {
      next: 'see the result: expunge schedule list',
    });
  }
  try {
    const found = await followLast(deps, lease);
    if (found === null) throw new ExpungeError('USAGE', `schedule ${name} is gone`);
    if (found.live !== null) {
      throw new ExpungeError('USAGE', `schedule ${name}: run ${found.live.id} has not ended`, {
        next: `wait for it: expunge status ${found.live.id} --watch`,
      });
    }
    return await makeRun(deps, lease, found.schedule, { slot: deps.now(), isManual: true });
  } finally {
    await lease.release();
  }
}

/** The list of a run, the guard that rejects it or why there is `nothing` to do, and how the protected ids have changed; '' = not at all. */
export type ScheduleDryRun = {
  list: ListFacts;
  retried: number;
  carried: number;
  note: string;
  protectedRows: number;
  change: string;
  refusal: ListRejection | null;
  nothing: string;
  maxDeletes: number;
};

/**
 * Reads the list and evaluates the guards; changes nothing. A process that claims a slot meanwhile replaces what the schedule carries: then
 * it reads anew.
 */
export async function dryRun(deps: ScheduleDeps, name: string, stop: AbortSignal): Promise<ScheduleDryRun> {
  const read = async () => (await readSchedule(deps.ledger.redis, deps.target.fp, name))!;
  for (let tries = 1; ; tries++) {
    const schedule = await withLastState(deps, await read());
    const [result] = await Promise.allSettled([evaluateNow(deps, schedule, stop)]);
    const isOld = (await read()).lastRun !== schedule.lastRun;
    if (isOld && tries < dryRunTries) continue;
    if (result.status === 'rejected') throw result.reason;
    return result.value;
  }
}

const dryRunTries = 3;

async function evaluateNow(deps: ScheduleDeps, schedule: Schedule, stop: AbortSignal): Promise<ScheduleDryRun> {
  const { maxDeletes = 0 } = settingsOf(schedule);
  return withSlotList(deps, schedule, stop, async (slotList) => {
    const { facts: list, carried, note, spool } = slotList;
    const parts = { list, retried: slotList.retried.ids, carried, note, protectedRows: spool.protected };
    return { ...parts, maxDeletes, ...evaluateList(slotList, schedule), change: protectedChange(list, schedule) };
  });
}

/** Reconciles the last run, and returns the schedule afterwards, with the run if it has not ended; null without a schedule. */
async function followLast(
  deps: ScheduleDeps,
  lease: ScheduleLease,
): Promise<{ schedule: Schedule; live: Run | null } | null> {
  const { redis } = deps.ledger;
  const schedule = await readSchedule(redis, lease.fp, lease.name);
  if (schedule !== null) await removeUnstartedRun(deps, lease, schedule);
  if (schedule === null || schedule.lastRun === '' || schedule.lastState !== '')
    return schedule && { schedule, live: null };
  const last = await readRun(redis, schedule.lastRun);
  // A run of another release is left to that release, and counts as not ended.
  if (last !== null && (!isSealed(last.state) || last.schema !== schemaVersion)) return { schedule, live: last };
  await follow(deps, lease, schedule, last);
  return { schedule: (await readSchedule(redis, lease.fp, lease.name)) ?? schedule, live: null };
}

/** The schedule with the state of its last run, which may not be recorded yet. */
async function withLastState({ ledger: { redis } }: ScheduleDeps, schedule: Schedule): Promise<Schedule> {
  if (schedule.lastRun === '' || schedule.lastState !== '') return schedule;
  const run = await readRun(redis, schedule.lastRun);
  return run !== null && isSealed(run.state) ? { ...schedule, lastState: run.state } : schedule;
}
