import { readTarget } from '../config/check-target.ts';
import { isoTime } from '../format.ts';
import type { Target } from '../model/target.ts';
import { type Session, withRedis } from '../operations/session.ts';
import { previewSlots } from '../schedule/describe-slots.ts';
import type { Schedule } from '../schedule/schedule.ts';
import { nextSlots } from '../schedule/slots.ts';
import { listText, previewText } from '../terminal/schedule-text.ts';
import { type Invocation, jsonLines } from './command.ts';
import { findSchedule, readScheduleRecords, type ScheduleRecord } from './schedule-work.ts';
import { sayUnlessJson } from './session.ts';

/** `schedule list` and `schedule preview`. */
export async function execute(invocation: Invocation): Promise<number> {
  const { verb, config, env } = invocation;
  const target = readTarget(config, env);
  const show = verb === 'schedule list' ? list : preview;
  return withRedis(invocation, sayUnlessJson(invocation), async (session) => {
    await show(invocation, session, target);
    return 0;
  });
}

async function list(invocation: Invocation, session: Session, target: Target): Promise<void> {
  const now = Date.now();
  showSchedules(invocation, target, await readScheduleRecords(session, target, now), now);
}

/** Prints the schedules of a target. */
export function showSchedules(
  { options, stdout, verbosity }: Invocation,
  target: Target,
  records: readonly ScheduleRecord[],
  now: number,
): void {
  const print = jsonLines(stdout, options.json);
  for (const { facts } of records) print('schedule', facts);
  if (!options.json) stdout.write(`${listText(records, target, now, verbosity === 'quiet')}\n`);
}

async function preview(invocation: Invocation, session: Session, target: Target): Promise<void> {
  showSlots(invocation, await findSchedule(session, target, invocation.args[0] ?? ''));
}

/** Prints the next slots of a schedule. */
export function showSlots({ options, stdout }: Invocation, schedule: Schedule): void {
  const [after = Date.now(), count = 5] = [options.after, options.count] as [number | undefined, number | undefined];
  const slots = previewSlots(schedule, after, count);
  if (!options.json) {
    stdout.write(`${previewText(schedule, slots)}\n`);
    return;
  }
  const print = jsonLines(stdout, true);
  const times = nextSlots(schedule, after, count);
  slots.forEach(({ local, note }, i) => {
    print('slot', { schedule: schedule.name, at: isoTime(times[i]!), local, tz: schedule.tz, note });
  });
}
