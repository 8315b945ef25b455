import { noteCompleted } from '../ledger/completed.ts';
import { removeRun } from '../ledger/end-run.ts';
import { isSealed, type Run, readRun, schemaVersion } from '../ledger/run.ts';
import { sealTally } from '../ledger/tally.ts';
import { leaveToWorkers } from '../queue/leave-to-workers.ts';
import type { Hand } from './hand.ts';
import { withEnd } from './history.ts';
import type { Schedule } from './schedule.ts';
import { readHistory, readSchedule, settle } from './schedule-store.ts';
import type { ScheduleWork } from './work.ts';

/** A process that was killed while it wrote a run left it: nobody has started it, and nobody will. */
export async function dropHalfMade(
  { ledger: { redis } }: ScheduleWork,
  hand: Hand,
  { preparing, lastRun }: Schedule,
): Promise<void> {
  if (preparing === '' || preparing === lastRun) return;
  const run = await readRun(redis, preparing);
  if (run?.state === 'preparing' || run?.state === 'planned') await removeRun(redis, run);
  await settle(redis, hand, { fields: { preparing: '' } });
}

/** Does what is to be done about the last run alone, and returns the schedule as it is then; the run, if it has not ended. */
export async function followLast(
  work: ScheduleWork,
  hand: Hand,
): Promise<{ schedule: Schedule; live: Run | null } | null> {
  const { redis } = work.ledger;
  const schedule = await readSchedule(redis, hand.fp, hand.name);
  if (schedule !== null) await dropHalfMade(work, hand, schedule);
  if (schedule === null || schedule.lastRun === '' || schedule.lastState !== '')
    return schedule && { schedule, live: null };
  const last = await readRun(redis, schedule.lastRun);
  // One of another release is left to that, and counts as a run that goes on.
  if (last !== null && (!isSealed(last.state) || last.schema !== schemaVersion)) return { schedule, live: last };
  await follow(work, hand, last);
  return { schedule: (await readSchedule(redis, hand.fp, hand.name)) ?? schedule, live: null };
}

/** Starts the last run where a crash kept it from being started, or notes how it ended. Only after a good end its files may go. */
export async function follow(work: ScheduleWork, hand: Hand, last: Run | null): Promise<void> {
  const { redis } = work.ledger;
  if (last === null) {
    await settle(redis, hand, { fields: { lastState: 'lost', lastEndedAt: work.now(), toArchive: '' } });
    return;
  }
  if (last.schema !== schemaVersion) return; // left to the release that has written it
  if (last.state === 'planned')
    return leaveToWorkers(work.ledger, work.feeder, last, { who: last.createdBy, reason: '' });
  const { id, state, counts } = await sealTally(redis, last);
  const left = counts.failed + counts.unknown + counts.not_attempted + counts.rejected;
  const ended = { state, deleted: counts.deleted, gone: counts.absent + counts.gone_unconfirmed, left };
  const history = withEnd(await readHistory(redis, hand.fp, hand.name), id, ended);
  const isWell = state === 'completed' && left === 0;
  const files = isWell ? {} : { toArchive: '' };
  if (state === 'completed') await noteCompleted(redis, hand.fp, hand.name, last.endedAt);
  await settle(redis, hand, { fields: { lastState: state, lastEndedAt: last.endedAt, ...files }, history });
}
