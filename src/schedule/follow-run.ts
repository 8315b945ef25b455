import { ExpungeError } from '../errors.ts';
import { type Conclusion, conclusionText, judgeRun } from '../ledger/conclusion.ts';
import { noteSuccess, removeIfUnstarted } from '../ledger/end-run.ts';
import { isFinalized, type Run, readRun, schemaVersion } from '../ledger/run.ts';
import { finalizeTally } from '../ledger/tally.ts';
import { isFailure, isGone, isSuccess, type Outcome, sumOutcomes } from '../model/outcome.ts';
import { startDetachedRun } from '../queue/enqueuer.ts';
import { scheduleChanged } from './changed-schedule.ts';
import { type ListFacts, type ListRejection, protectedChange } from './guards.ts';
import { leaseSchedule, type ScheduleLease } from './lease.ts';
import { creatorPrefix, evaluateList, linkRetried, type MakeRunResult, makeRun, pauseAs } from './make-run.ts';
import { withOccurrenceList } from './occurrence-list.ts';
import { parseStoredSettings, type RunEnd, type Schedule, withEnd } from './schedule.ts';
import { readHistory, readSchedule, type ScheduleDeps, updateSchedule } from './schedule-store.ts';

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
  // A process that hangs may still write it. The next run of the schedule replaces it in `preparing`.
  if (run === null) return;
  await removeIfUnstarted(redis, run, creatorPrefix(lease.name));
  await updateSchedule(redis, lease, { fields: { preparing: '' } });
}

/**
 * Starts the last run if a crash left it unstarted, or records how it ended. The heartbeat is due if it went well. Its files are archived if it went
 * well, or left only ids that the next occurrence retries from its ledger. A run that found none of its ids pauses the schedule.
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
  if (last.schema !== schemaVersion) return; // left to the version that wrote it
  if (last.state === 'planned') {
    await linkRetried(deps, last);
    await startDetachedRun(deps.ledger, deps.enqueuer, last, { who: last.createdBy, reason: '' });
    return;
  }
  const finalized = await finalizeTally(redis, last);
  const conclusion = judgeRun(finalized)!;
  // Before its end is recorded, so that a process that dies in between leaves no such run with an active schedule.
  if (conclusion === 'none_there' && !isRetry(finalized, schedule))
    await pauseAs(deps, lease, { guard: 'none_there', halt: '', reason: noneThere(finalized) });
  const history = withEnd(
    await readHistory(redis, lease.fp, lease.name),
    finalized.id,
    endOfRun(finalized, conclusion),
  );
  const { state, endedAt } = finalized;
  if (conclusion === 'well') await noteSuccess(redis, lease.fp, lease.name, endedAt);
  await updateSchedule(redis, lease, {
    fields: {
      lastState: state,
      lastConclusion: conclusion,
      lastEndedAt: endedAt,
      ...(areFilesDone(finalized, conclusion, schedule) ? {} : { toArchive: '' }),
      ...(conclusion === 'well' ? { heartbeatDue: deps.now() } : {}),
    },
    history,
  });
}

function noneThere({ id, state }: Run): string {
  const words = conclusionText('none_there');
  return `its run ${id} is ${state}, but ${words}: check its list, --base-url, --account and --resource; if its ids may be gone, add the schedule again with --expect-absent`;
}

/** Whether a run sent only ids that the previous run had left. If such ids are gone, the list is not wrong: retries often end like this. */
function isRetry({ id }: Run, { retriedFrom }: Schedule): boolean {
  return retriedFrom?.run === id && retriedFrom.file === 0;
}

function endOfRun({ state, counts }: Run, conclusion: Conclusion): RunEnd {
  return {
    state,
    conclusion,
    deleted: counts.deleted,
    gone: sumOutcomes(counts, isGone),
    left: sumOutcomes(counts, (outcome) => !isSuccess(outcome)),
  };
}

/** Whether the files of a run need not be read again. The next occurrence takes its retries from the ledger. */
function areFilesDone({ counts }: Run, conclusion: Conclusion, { retryFailed }: Schedule): boolean {
  if (conclusion !== 'left') return conclusion === 'well';
  const isRetried = (outcome: Outcome) => retryFailed && isFailure(outcome);
  return sumOutcomes(counts, (outcome) => !isSuccess(outcome) && !isRetried(outcome)) === 0;
}

/**
 * Makes a run of a schedule on request, even if the schedule is paused. The guards apply, but a rejection does not pause the schedule. Throws USAGE
 * while its last run has not ended, and while another process holds its lease. Throws GUARD if `seen` is given and the schedule now has another
 * revision.
 */
export async function runNow(
  deps: ScheduleDeps,
  name: string,
  stop: AbortSignal,
  seen: number | null = null,
): Promise<MakeRunResult> {
  const lease = await leaseSchedule(deps.ledger.redis, deps.target.fp, name, stop);
  if (lease === null) {
    throw new ExpungeError('USAGE', `schedule ${name}: another process is making a run of it now`, {
      next: (toType) => `see the result: ${toType('schedule list')}`,
    });
  }
  try {
    const found = await followLast(deps, lease, seen);
    if (found === null) throw new ExpungeError('USAGE', `schedule ${name} is gone`);
    const { live } = found;
    if (live !== null) {
      throw new ExpungeError('USAGE', `schedule ${name}: run ${live.id} has not ended`, {
        next: (toType) => `wait for it: ${toType('status', live.id, '--watch')}`,
      });
    }
    return await makeRun(deps, lease, found.schedule, { occurrence: deps.now(), isManual: true });
  } finally {
    await lease.release();
  }
}

/** The list of a run, the guard that rejects it or the reason why there is `nothing` to do, and the change of the protected ids; '' = none. */
export type ScheduleDryRun = {
  list: ListFacts;
  retried: number;
  carriedOver: number;
  note: string;
  protectedRows: number;
  change: string;
  refusal: ListRejection | null;
  nothing: string;
  maxDeletes: number;
};

/**
 * Reads the list and evaluates the guards; changes nothing. If a process that claims an occurrence at the same time replaces what the schedule
 * carries over, it reads again.
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
  const maxDeletes = parseStoredSettings(schedule).maxDeletes ?? 0;
  return withOccurrenceList(deps, schedule, stop, async (occurrenceList) => {
    const { facts: list, carriedOver, note, spool } = occurrenceList;
    const parts = { list, retried: occurrenceList.retried.ids, carriedOver, note, protectedRows: spool.protected };
    return { ...parts, maxDeletes, ...evaluateList(occurrenceList, schedule), change: protectedChange(list, schedule) };
  });
}

/** Reconciles the last run, and returns the schedule afterwards, with the run if it has not ended; null without a schedule. */
async function followLast(
  deps: ScheduleDeps,
  lease: ScheduleLease,
  seen: number | null,
): Promise<{ schedule: Schedule; live: Run | null } | null> {
  const { redis } = deps.ledger;
  const schedule = await readSchedule(redis, lease.fp, lease.name);
  // From here on, a process that replaces the definition takes the lease away.
  if (schedule !== null && seen !== null && schedule.revision !== seen) throw scheduleChanged(schedule, 'started');
  if (schedule !== null) await removeUnstartedRun(deps, lease, schedule);
  if (schedule === null || schedule.lastRun === '' || schedule.lastState !== '')
    return schedule && { schedule, live: null };
  const last = await readRun(redis, schedule.lastRun);
  // A run of another version is left to that version, and counts as not ended.
  if (last !== null && (!isFinalized(last.state) || last.schema !== schemaVersion)) return { schedule, live: last };
  await follow(deps, lease, schedule, last);
  const now = (await readSchedule(redis, lease.fp, lease.name)) ?? schedule;
  // The end of its last run may have paused it.
  if (seen !== null && now.revision !== seen) throw scheduleChanged(now, 'started');
  return { schedule: now, live: null };
}

/** The schedule with the end of its last run, even if that is not recorded yet. */
async function withLastState({ ledger: { redis } }: ScheduleDeps, schedule: Schedule): Promise<Schedule> {
  if (schedule.lastRun === '' || schedule.lastState !== '') return schedule;
  const run = await readRun(redis, schedule.lastRun);
  return run !== null && isFinalized(run.state)
    ? { ...schedule, lastState: run.state, lastConclusion: judgeRun(run)! }
    : schedule;
}
