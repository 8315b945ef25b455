import { targetForAction } from '../../config/check-target.ts';
import { isoTime } from '../../format.ts';
import type { Target } from '../../model/target.ts';
import type { ScheduleRecord } from '../../operations/schedule-record.ts';
import { previewOccurrences } from '../../schedule/describe-occurrences.ts';
import { nextOccurrences } from '../../schedule/occurrences.ts';
import type { Schedule } from '../../schedule/schedule.ts';
import { listText, previewText } from '../../terminal/schedule-text.ts';
import { tableFit } from '../../terminal/style.ts';
import { type Invocation, jsonLines } from '../command.ts';
import { withOperations } from '../with-operations.ts';

/** `schedule list` and `schedule preview`. */
export async function execute(invocation: Invocation): Promise<number> {
  const { commandName, args, config, env } = invocation;
  const target = targetForAction(config, env);
  return withOperations(invocation, 'schedules', async (schedules) => {
    if (commandName === 'schedule list') showSchedules(invocation, target, await schedules.list(target));
    else showOccurrences(invocation, await schedules.find(target, args[0] ?? ''));
    return 0;
  });
}

/** Prints the schedules of a target. */
function showSchedules(
  { options, toType, stdout, env, verbosity }: Invocation,
  target: Target,
  records: readonly ScheduleRecord[],
): void {
  const print = jsonLines(stdout, options.json);
  for (const { facts } of records) print('schedule', facts);
  const fit = tableFit(stdout, env, ['WHEN', 'NEXT']);
  if (!options.json)
    stdout.write(`${listText(records, target, Date.now(), { toType, isQuiet: verbosity === 'quiet', fit })}\n`);
}

/** Prints the next occurrences of a schedule. */
function showOccurrences({ options, stdout }: Invocation, schedule: Schedule): void {
  const { after = Date.now(), count = 5 } = options;
  const occurrences = previewOccurrences(schedule, after, count);
  if (!options.json) {
    stdout.write(`${previewText(schedule, occurrences)}\n`);
    return;
  }
  const print = jsonLines(stdout, true);
  const times = nextOccurrences(schedule, after, count);
  occurrences.forEach(({ local, note }, i) => {
    print('occurrence', { schedule: schedule.name, at: isoTime(times[i]!), local, tz: schedule.tz, note });
  });
}
