import { ExpungeError } from '../errors.ts';
import { readRun } from '../ledger/run.ts';
import { pausedEvent } from '../notify/events.ts';
import { readClock } from '../redis/client.ts';
import { keys } from '../redis/keys.ts';
import { scheduleChanged } from '../schedule/changed-schedule.ts';
import type { Schedule } from '../schedule/schedule.ts';
import { readSchedule, type ScheduleActionName, steerSchedule as store } from '../schedule/schedule-store.ts';
import type { ScheduleAction, SeenScheduleAction } from './action.ts';
import { findSchedule, scheduleFacts } from './schedule-record.ts';
import type { Session } from './session.ts';

/** A schedule after an action, when that was (ms since 1970), and its facts for `--json`. */
export type SteeredSchedule = { at: number; facts: Record<string, unknown> };

export async function pauseSchedule(session: Session, action: ScheduleAction): Promise<SteeredSchedule> {
  return steer(session, 'pause', await findSchedule(session, action.target, action.name), action);
}

export async function resumeSchedule(session: Session, action: SeenScheduleAction): Promise<SteeredSchedule> {
  const schedule = await findSchedule(session, action.target, action.name);
  await refuseHalted(session, schedule);
  return steer(session, 'resume', schedule, action);
}

export async function removeSchedule(session: Session, action: SeenScheduleAction): Promise<SteeredSchedule> {
  return steer(session, 'remove', await findSchedule(session, action.target, action.name), action);
}

const undone = { pause: 'paused', resume: 'resumed', remove: 'removed' } as const;

async function steer(
  session: Session,
  action: ScheduleActionName,
  schedule: Schedule,
  { target, by, seen }: ScheduleAction & { seen?: number },
): Promise<SteeredSchedule> {
  const { redis } = session;
  const { name } = schedule;
  const at = Math.round(await readClock(redis, keys.schedules(target.fp))); // occurrences are due by this clock
  const noted = { at, by: 'operator', ...by, seen: seen ?? null } as const;
  const event = action === 'pause' ? pausedEvent({ target, name, at, reason: by.reason }, '', by.who) : null;
  const done = await store(redis, target.fp, name, action, noted, event);
  const after = (await readSchedule(redis, target.fp, name)) ?? schedule;
  if (done === 'stale') throw scheduleChanged(after, undone[action]);
  return { at, facts: await scheduleFacts(session, target, after, at) };
}

/** Throws USAGE if the last run is halted: the schedule would be paused again at once. */
async function refuseHalted({ redis }: Session, { name, lastRun }: Schedule): Promise<void> {
  const run = lastRun === '' ? null : await readRun(redis, lastRun);
  if (run?.state !== 'halted') return;
  throw new ExpungeError('USAGE', `schedule ${name}: its run ${run.id} is halted: ${run.reason}`, {
    next: (toType) =>
      `remove the cause and resume it first: ${toType('resume', run.id)}, or end it: ${toType('cancel', run.id)}`,
  });
}
