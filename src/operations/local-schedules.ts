import { addSchedule } from './add-schedule.ts';
import type { ScheduleOperations } from './operations.ts';
import { dryRunSchedule, runSchedule } from './run-schedule.ts';
import { findSchedule, readScheduleRecords } from './schedule-record.ts';
import type { SchedulePlace } from './schedule-work.ts';
import type { Session } from './session.ts';
import { pauseSchedule, removeSchedule, resumeSchedule } from './steer-schedule.ts';

/** Orders for schedules in the Redis of this session; lists are read on this machine. */
export function localSchedules(session: Session, place: SchedulePlace): ScheduleOperations {
  return {
    list: (target) => readScheduleRecords(session, target, Date.now()),
    find: (target, name) => findSchedule(session, target, name),
    add: (order) => addSchedule(session, place, order),
    run: (order) => runSchedule(session, place, order),
    dryRun: (order) => dryRunSchedule(session, place, order),
    pause: (order) => pauseSchedule(session, order),
    resume: (order) => resumeSchedule(session, order),
    remove: (order) => removeSchedule(session, order),
  };
}
