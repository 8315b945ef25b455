import { ExpungeError } from '../errors.ts';
import { noteCompleted, removeRun } from '../ledger/end-run.ts';
import { isSealed, type Run, readRun, schemaVersion } from '../ledger/run.ts';
import { sealTally } from '../ledger/tally.ts';
import { isGone, isSuccess, sumOutcomes } from '../model/outcome.ts';
import { startDetachedRun } from '../queue/feeder.ts';
import { type ListFacts, type ListRejection, protectedChange } from './guards.ts';
import { acquireLease, type ScheduleLease } from './lease.ts';
import { evaluateList, factsOf, type MakeRunResult, makeRun } from './make-run.ts';
import { withScheduledList } from './read-scheduled-list.ts';
import { type Schedule, settingsOf, withEnd } from './schedule.ts';
import { readHistory, readSchedule, type ScheduleDeps, updateSchedule } from './schedule-store.ts';

/** A process that was killed while it wrote a run left it: nobody has started it, and nobody will. */
export async function removeUnstartedRun(
  { ledger: { redis } }: ScheduleDeps,
  lease: ScheduleLease,
  { preparing, lastRun }: Schedule,
): Promise<void> {
  if (preparing === '' || preparing === lastRun) return;
  const run = await readRun(redis, preparing);
  if (run?.state === 'preparing' || run?.state === 'planned') await removeRun(redis, run);
  await updateSchedule(redis, lease, { fields: { preparing: '' } });
}

/** Does what is to be done about the last run alone, and returns the schedule as it is then; the run, if it has not ended. */
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
  // One of another release is left to that, and counts as a run that goes on.
  if (last !== null && (!isSealed(last.state) || last.schema !== schemaVersion)) return { schedule, live: last };
  await follow(deps, lease, last);
  return { schedule: (await readSchedule(redis, lease.fp, lease.name)) ?? schedule, live: null };
}

/** Starts the last run where a crash kept it from being started, or notes how it ended. Only after a good end its files may go. */
export async function follow(deps: ScheduleDeps, lease: ScheduleLease, last: Run | null): Promise<void> {
  const { redis } = deps.ledger;
  if (last === null) {
    await updateSchedule(redis, lease, { fields: { lastState: 'lost', lastEndedAt: deps.now(), toArchive: '' } });
    return;
  }
  if (last.schema !== schemaVersion) return; // left to the release that has written it
  if (last.state === 'planned')
    return startDetachedRun(deps.ledger, deps.feeder, last, { who: last.createdBy, reason: '' });
  const { id, state, counts } = await sealTally(redis, last);
  const left = sumOutcomes(counts, (outcome) => !isSuccess(outcome));
  const ended = { state, deleted: counts.deleted, gone: sumOutcomes(counts, isGone), left };
  const history = withEnd(await readHistory(redis, lease.fp, lease.name), id, ended);
  const isWell = state === 'completed' && left === 0;
  const files = isWell ? {} : { toArchive: '' };
  if (state === 'completed') await noteCompleted(redis, lease.fp, lease.name, last.endedAt);
  await updateSchedule(redis, lease, { fields: { lastState: state, lastEndedAt: last.endedAt, ...files }, history });
}

/**
 * Makes a run of a schedule because somebody asks for it, also of one that is paused; the guards hold, and refuse without pausing it. Throws
 * USAGE while its last run has not ended, or while another process attends to it.
 */
export async function runNow(deps: ScheduleDeps, name: string, stop: AbortSignal): Promise<MakeRunResult> {
  const lease = await acquireLease(deps.ledger.redis, deps.target.fp, name, stop);
  if (lease === null) {
    throw new ExpungeError('USAGE', `schedule ${name}: another process is making a run of it at the moment`, {
      next: 'see what becomes of it: expunge schedule list',
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

/** What a run would be made of, what keeps it from being made, and what has changed of the protected ids; '' = nothing. */
export type ScheduleDryRun = {
  list: ListFacts;
  protectedRows: number;
  change: string;
  refusal: ListRejection | null;
  nothing: string;
  maxDeletes: number;
};

/** Reads the list, and changes nothing. */
export async function dryRun(deps: ScheduleDeps, name: string, stop: AbortSignal): Promise<ScheduleDryRun> {
  const schedule = await withLastState(deps, (await readSchedule(deps.ledger.redis, deps.target.fp, name))!);
  const { maxDeletes = 0 } = settingsOf(schedule);
  return withScheduledList(deps, schedule, stop, async (scheduled) => {
    const list = factsOf(scheduled);
    const change = protectedChange(list, schedule);
    return { list, maxDeletes, ...evaluateList(scheduled, schedule), protectedRows: scheduled.spool.protected, change };
  });
}

/** Nobody may have looked yet how the last run ended. */
async function withLastState({ ledger: { redis } }: ScheduleDeps, schedule: Schedule): Promise<Schedule> {
  if (schedule.lastRun === '' || schedule.lastState !== '') return schedule;
  const run = await readRun(redis, schedule.lastRun);
  return run !== null && isSealed(run.state) ? { ...schedule, lastState: run.state } : schedule;
}
