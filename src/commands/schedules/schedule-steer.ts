import { targetForAction } from '../../config/check-target.ts';
import { isPausedFor, type Schedule } from '../../schedule/schedule.ts';
import type { ScheduleActionName } from '../../schedule/schedule-store.ts';
import { steeredText } from '../../terminal/schedule-text.ts';
import { haltedSchedules, haltOfAll, resumeAll } from '../actions/resume-all.ts';
import { type Invocation, jsonLines } from '../command.ts';
import { askYes, readBy } from '../session.ts';
import { withOperations } from '../with-operations.ts';

/** `schedule pause`, `resume` and `remove`. Repeating them changes nothing. */
export async function execute(invocation: Invocation): Promise<number> {
  const { commandName, args, config, env, options, toType, stdout, stderr, verbosity } = invocation;
  const target = targetForAction(config, env);
  const action = commandName.replace('schedule ', '') as ScheduleActionName;
  const halt = action === 'resume' ? haltOfAll(invocation, 'a schedule') : null;
  return withOperations(invocation, 'schedules', async (schedules) => {
    const steer = async (schedule: Schedule) => {
      const { name, revision: seen } = schedule;
      const { at, facts } = await schedules[action]({ target, name, by: readBy(invocation), seen });
      stderr.write(`${steeredText(action, schedule, at, { toType, isQuiet: verbosity === 'quiet' })}\n`);
      jsonLines(stdout, options.json)('schedule', facts);
    };
    if (halt !== null) {
      const all = (await schedules.list(target)).map(({ schedule }) => schedule);
      const found = all.filter((schedule) => isPausedFor(schedule, halt));
      return resumeAll(invocation, { target, halt, found, table: haltedSchedules, resume: steer });
    }
    const schedule = await schedules.find(target, args[0] ?? '');
    if (action === 'remove') await askYes(invocation, `Remove schedule ${schedule.name}? Its runs stay.`);
    await steer(schedule);
    return 0;
  });
}
