import { readTarget } from '../config/check-target.ts';
import { ExpungeError } from '../errors.ts';
import { readRun } from '../ledger/run.ts';
import type { Target } from '../model/target.ts';
import { pausedEvent } from '../notify/events.ts';
import { type Session, withRedis } from '../operations/session.ts';
import { readClock } from '../redis/client.ts';
import { keys } from '../redis/keys.ts';
import type { Schedule } from '../schedule/schedule.ts';
import { readSchedule, type ScheduleAction, steerSchedule } from '../schedule/schedule-store.ts';
import { steeredText } from '../terminal/schedule-text.ts';
import { type Invocation, jsonLines, reasonOf } from './command.ts';
import { findSchedule, scheduleFacts, withNotifiers } from './schedule-work.ts';
import { askYes, sayUnlessJson, whoAmI } from './session.ts';

/** `schedule pause`, `resume` and `remove`. Doing it twice changes nothing. */
export async function execute(invocation: Invocation): Promise<number> {
  const { verb, args, config, env, options, stdout, stderr, verbosity } = invocation;
  const target = readTarget(config, env);
  const action = verb.replace('schedule ', '') as ScheduleAction;
  const reason = reasonOf(options);
  return withRedis(invocation, sayUnlessJson(invocation), async (session) => {
    const schedule = await findSchedule(session, target, args[0] ?? '');
    if (action === 'remove') await confirmRemoval(invocation, schedule);
    if (action === 'resume') await refuseHalted(session, schedule);
    const now = Math.round(await readClock(session.redis, keys.schedules(target.fp))); // slots are due by it
    const order = { at: now, by: 'operator', who: whoAmI(env), reason } as const;
    const event =
      action === 'pause' ? pausedEvent({ target, name: schedule.name, at: now, reason }, '', order.who) : null;
    await steerSchedule(session.redis, target.fp, schedule.name, action, order, event);
    await updateNotifier(session, target, schedule, action);
    const after = (await readSchedule(session.redis, target.fp, schedule.name)) ?? schedule;
    stderr.write(`${steeredText(action, schedule, now, verbosity === 'quiet')}\n`);
    jsonLines(stdout, options.json)('schedule', await scheduleFacts(session, target, after, now));
    return 0;
  });
}

/** Throws USAGE without a confirmation. */
export async function confirmRemoval(invocation: Invocation, { name }: Schedule): Promise<void> {
  await askYes(invocation, `Remove schedule ${name}? Its runs stay.`);
}

/** Throws USAGE if the last run is halted: the schedule would be paused again at once. */
async function refuseHalted({ redis }: Session, { name, lastRun }: Schedule): Promise<void> {
  const run = lastRun === '' ? null : await readRun(redis, lastRun);
  if (run?.state !== 'halted') return;
  throw new ExpungeError('USAGE', `schedule ${name}: its run ${run.id} is halted: ${run.reason}`, {
    next: `remove the cause and resume it first: expunge resume ${run.id}, or end it: expunge cancel ${run.id}`,
  });
}

async function updateNotifier(
  session: Session,
  target: Target,
  schedule: Schedule,
  action: ScheduleAction,
): Promise<void> {
  await withNotifiers(session, target, schedule.from, (notifiers) =>
    action === 'resume' ? notifiers.ensure(schedule.name, schedule) : notifiers.remove(schedule.name),
  );
}
