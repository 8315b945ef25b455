import { duration, plural } from '../format.ts';
import { isFinalized, type Run, readRun } from '../ledger/run.ts';
import { type Archive, archiveFiles, findArchive } from './archive.ts';
import { type Decision, decide, type LiveRun } from './decide.ts';
import { follow, removeUnstartedRun } from './follow-run.ts';
import { leaseSchedule, type ScheduleLease } from './lease.ts';
import { makeRun, pauseAs } from './make-run.ts';
import { extendHistory } from './occurrence-history.ts';
import { dueOccurrences } from './occurrences.ts';
import type { ReadFiles, Schedule } from './schedule.ts';
import { readSchedule, type ScheduleDeps, updateSchedule } from './schedule-store.ts';

/** The maximum number of steps for one schedule in a row; the next call continues. */
const maxSteps = 5;

/**
 * Reconciles a schedule: records how its last run ended, and makes the run of an occurrence that is due. Workers call it
 * every 3 s. Repeating it, even in two processes, does nothing twice.
 */
export async function reconcile(deps: ScheduleDeps, name: string, stop: AbortSignal): Promise<void> {
  if ((await findDueWork(deps, name)) === null) return;
  const lease = await leaseSchedule(deps.ledger.redis, deps.target.fp, name, stop);
  if (lease === null) return;
  try {
    for (let step = 0; step < maxSteps && !lease.signal.aborted; step++) {
      const due = await findDueWork(deps, name);
      if (due === null) return;
      await act(deps, lease, due);
    }
  } finally {
    await lease.release();
  }
}

/** The due work: first for the last run, if it has ended or was never started, then for the archive, then for the occurrences. */
type DueWork = {
  schedule: Schedule;
  last: Run | null;
  isToFollow: boolean;
  archive: Archive | null;
  decision: Decision;
};

/** Finds the due work; null if there is none, or this process does not have the source. */
async function findDueWork(
  { ledger: { redis }, target, sources, now, syncClock }: ScheduleDeps,
  name: string,
): Promise<DueWork | null> {
  await syncClock();
  const schedule = await readSchedule(redis, target.fp, name);
  const source = schedule === null || schedule.state === 'removed' ? undefined : sources[schedule.from];
  if (schedule === null || source === undefined) return null;
  const isOpen = schedule.lastRun !== '' && schedule.lastState === '';
  const last = isOpen ? await readRun(redis, schedule.lastRun) : null;
  const isToFollow = isOpen && (last === null || isFinalized(last.state) || last.state === 'planned');
  const decision = decide(schedule, last && liveOf(last), now());
  const archive = isOpen || schedule.toArchive === null ? null : await findArchive(source, schedule.toArchive);
  const isIdle = !isToFollow && archive === null && decision.do === 'nothing';
  return isIdle ? null : { schedule, last, isToFollow, archive, decision };
}

function liveOf({ id, state, reason, halt }: Run): LiveRun | null {
  return isFinalized(state) ? null : { id, state, reason, halt };
}

async function act(deps: ScheduleDeps, lease: ScheduleLease, due: DueWork): Promise<void> {
  const { schedule, last, isToFollow, archive, decision } = due;
  await removeUnstartedRun(deps, lease, schedule);
  if (isToFollow) return follow(deps, lease, schedule, last);
  if (archive !== null) return archiveRunFiles(deps, lease, schedule.toArchive!, archive);
  switch (decision.do) {
    case 'nothing':
      return;
    case 'pause':
      return pauseAs(deps, lease, { guard: 'halted', halt: decision.halt, reason: decision.reason });
    case 'miss':
      return recordWithoutRun(
        deps,
        lease,
        decision,
        'missed',
        `seen ${duration(decision.lateMs)} late`,
        decision.hadWaited,
      );
    case 'skip':
      return recordWithoutRun(deps, lease, decision, 'skipped', decision.reason);
    case 'run':
      return run(deps, lease, schedule, decision);
  }
}

async function archiveRunFiles(
  { ledger, log }: ScheduleDeps,
  lease: ScheduleLease,
  files: ReadFiles,
  archive: Archive,
): Promise<void> {
  const { moved, left } = await archiveFiles(archive, files);
  log.info({ schedule: lease.name, run: files.run, files: moved.length }, 'files archived');
  if (left.length > 0)
    log.warn(
      { schedule: lease.name, files: left, reason: 'they have changed since, or are gone' },
      'files not archived',
    );
  await updateSchedule(ledger.redis, lease, { fields: { toArchive: '' } });
}

type OccurrencesWithoutRun = { occurrence: number; occurrences: number };

/** Records occurrences that get no run. */
async function recordWithoutRun(
  deps: ScheduleDeps,
  lease: ScheduleLease,
  { occurrence, occurrences }: OccurrencesWithoutRun,
  outcome: 'missed' | 'skipped',
  reason: string,
  hadWaited = false,
): Promise<void> {
  const recorded = await historyWithoutRun(deps, lease, { occurrence, occurrences }, outcome, reason);
  const fields = { after: occurrence, ...(hadWaited && { waiting: '' }) };
  await updateSchedule(deps.ledger.redis, lease, { ...recorded, fields, ifActive: true });
  deps.log.info(
    { schedule: lease.name, occurrences, reason },
    outcome === 'missed' ? 'occurrences missed' : 'occurrences skipped',
  );
}

function historyWithoutRun(
  deps: ScheduleDeps,
  lease: ScheduleLease,
  { occurrence, occurrences }: OccurrencesWithoutRun,
  outcome: 'missed' | 'skipped',
  reason: string,
): ReturnType<typeof extendHistory> {
  const facts = { run: '', rows: null, retried: 0, carriedOver: 0, ended: null };
  return extendHistory(deps, lease, {
    occurrence,
    occurrences,
    at: deps.now(),
    outcome,
    reason,
    by: deps.who,
    ...facts,
  });
}

/** Records that an occurrence is to have a run, even if this process ends. Returns false if the schedule is no longer active or the lease is lost. */
async function reserveOccurrence(
  deps: ScheduleDeps,
  lease: ScheduleLease,
  schedule: Schedule,
  { occurrence, missed }: { occurrence: number; missed: number },
): Promise<boolean> {
  const reason = `${plural(missed, 'occurrences')} passed before one was handled`;
  const before =
    missed > 0 ? (dueOccurrences(schedule, schedule.after, occurrence - 1)?.latest ?? occurrence) : occurrence;
  const recorded =
    missed > 0
      ? await historyWithoutRun(deps, lease, { occurrence: before, occurrences: missed }, 'missed', reason)
      : {};
  const settlement = { ...recorded, fields: { after: occurrence, waiting: occurrence }, ifActive: true };
  return (await updateSchedule(deps.ledger.redis, lease, settlement)) === 'done';
}

async function run(
  deps: ScheduleDeps,
  lease: ScheduleLease,
  schedule: Schedule,
  decision: Decision & { do: 'run' },
): Promise<void> {
  const isTaken =
    schedule.waiting === decision.occurrence || (await reserveOccurrence(deps, lease, schedule, decision));
  if (isTaken) await makeRun(deps, lease, schedule, { occurrence: decision.occurrence, isManual: false });
}
