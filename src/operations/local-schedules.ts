import { addSchedule } from './add-schedule.ts';
import type { ScheduleOperations } from './operations.ts';
import { dryRunSchedule, runSchedule } from './run-schedule.ts';
import { findSchedule, readScheduleRecords } from './schedule-record.ts';
import type { SchedulePlace } from './schedule-work.ts';
import type { Session } from './session.ts';
import { pauseSchedule, removeSchedule, resumeSchedule } from './steer-schedule.ts';

/** Actions for schedules in the Redis of this session; lists are read on this machine. */
export function localSchedules(session: Session, place: SchedulePlace): ScheduleOperations {
  return {
    list: (target) => readScheduleRecords(session, target, Date.now()),
    find: (target, name) => findSchedule(session, target, name),
    add: (action) => addSchedule(session, place, action),
    run: (action) => runSchedule(session, place, action),
    dryRun: (action) => dryRunSchedule(session, place, action),
    pause: (action) => pauseSchedule(session, action),
    resume: (action) => resumeSchedule(session, action),
    remove: (action) => removeSchedule(session, action),
  };
}
