import { orderedTarget } from '../config/check-target.ts';
import type { ScheduleAction } from '../schedule/schedule-store.ts';
import { steeredText } from '../terminal/schedule-text.ts';
import { type Invocation, jsonLines } from './command.ts';
import { askYes, byOf } from './session.ts';
import { withOperations } from './with-operations.ts';

/** `schedule pause`, `resume` and `remove`. Doing it twice changes nothing. */
export async function execute(invocation: Invocation): Promise<number> {
  const { verb, args, config, env, options, toType, stdout, stderr, verbosity } = invocation;
  const target = orderedTarget(config, env);
  const action = verb.replace('schedule ', '') as ScheduleAction;
  return withOperations(invocation, 'schedules', async (schedules) => {
    const schedule = await schedules.find(target, args[0] ?? '');
    const { name, revision: seen } = schedule;
    if (action === 'remove') await askYes(invocation, `Remove schedule ${name}? Its runs stay.`);
    const { at, facts } = await schedules[action]({ target, name, by: byOf(invocation), seen });
    stderr.write(`${steeredText(action, schedule, at, { toType, isQuiet: verbosity === 'quiet' })}\n`);
    jsonLines(stdout, options.json)('schedule', facts);
    return 0;
  });
}
