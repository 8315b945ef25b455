import { ExpungeError } from '../errors.ts';
import { isSealed, readRun } from '../ledger/run.ts';
import { followLast } from './follow-run.ts';
import { type ListFacts, protectedChange, type Refusal } from './guards.ts';
import { takeInHand } from './hand.ts';
import { factsOf, judge, type Made, makeRun } from './make-run.ts';
import { withScheduledList } from './read-scheduled-list.ts';
import { type Schedule, settingsOf } from './schedule.ts';
import { readSchedule } from './schedule-store.ts';
import type { ScheduleWork } from './work.ts';

/**
 * Makes a run of a schedule because somebody asks for it, also of one that is paused; the guards hold, and refuse without pausing it. Throws
 * USAGE while its last run has not ended, or while another process attends to it.
 */
export async function runNow(work: ScheduleWork, name: string, stop: AbortSignal): Promise<Made> {
  const hand = await takeInHand(work.ledger.redis, work.target.fp, name, stop);
  if (hand === null) {
    throw new ExpungeError('USAGE', `schedule ${name}: another process is making a run of it at the moment`, {
      next: 'see what becomes of it: expunge schedule list',
    });
  }
  try {
    const found = await followLast(work, hand);
    if (found === null) throw new ExpungeError('USAGE', `schedule ${name} is gone`);
    if (found.live !== null) {
      throw new ExpungeError('USAGE', `schedule ${name}: run ${found.live.id} has not ended`, {
        next: `wait for it: expunge status ${found.live.id} --watch`,
      });
    }
    return await makeRun(work, hand, found.schedule, { slot: work.now(), byHand: true });
  } finally {
    await hand.release();
  }
}

/** What a run would be made of, what keeps it from being made, and what has changed of the protected ids; '' = nothing. */
export type Dry = {
  list: ListFacts;
  protectedRows: number;
  change: string;
  refusal: Refusal | null;
  nothing: string;
  maxDeletes: number;
};

/** Reads the list, and changes nothing. */
export async function dryRun(work: ScheduleWork, name: string, stop: AbortSignal): Promise<Dry> {
  const schedule = await asItWillBe(work, (await readSchedule(work.ledger.redis, work.target.fp, name))!);
  const { maxDeletes = 0 } = settingsOf(schedule);
  return withScheduledList(work, schedule, stop, async (scheduled) => {
    const list = factsOf(scheduled);
    const change = protectedChange(list, schedule);
    return { list, maxDeletes, ...judge(scheduled, schedule), protectedRows: scheduled.spool.protected, change };
  });
}

/** Nobody may have looked yet how the last run ended. */
async function asItWillBe({ ledger: { redis } }: ScheduleWork, schedule: Schedule): Promise<Schedule> {
  if (schedule.lastRun === '' || schedule.lastState !== '') return schedule;
  const run = await readRun(redis, schedule.lastRun);
  return run !== null && isSealed(run.state) ? { ...schedule, lastState: run.state } : schedule;
}
