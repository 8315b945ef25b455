import { readTarget } from '../config/check-target.ts';
import { isoTime } from '../format.ts';
import type { Target } from '../model/target.ts';
import { previewSlots } from '../schedule/describe-slots.ts';
import { listSchedules, readHistory } from '../schedule/schedule-store.ts';
import { nextSlots } from '../schedule/slots.ts';
import { listText, previewText } from '../terminal/schedule-text.ts';
import { type Invocation, jsonLines } from './command.ts';
import { findSchedule, scheduleFacts } from './schedule-work.ts';
import { type Session, sayOf, withRedis } from './session.ts';

/** `schedule list` and `schedule preview`. */
export async function execute(invocation: Invocation): Promise<number> {
  const { verb, config, env, options } = invocation;
  const target = readTarget(config, env);
  const show = verb === 'schedule list' ? list : preview;
  return withRedis(invocation, options.json ? () => {} : sayOf(invocation), async (session) => {
    await show(invocation, session, target);
    return 0;
  });
}

async function list({ options, stdout, verbosity }: Invocation, session: Session, target: Target): Promise<void> {
  const schedules = await listSchedules(session.redis, target.fp);
  const now = Date.now();
  if (options.json) {
    const print = jsonLines(stdout, true);
    for (const schedule of schedules) print('schedule', await scheduleFacts(session, target, schedule, now));
    return;
  }
  const histories = await Promise.all(schedules.map(({ name }) => readHistory(session.redis, target.fp, name)));
  stdout.write(
    `${listText(
      schedules.map((schedule, i) => ({ schedule, history: histories[i]! })),
      target,
      now,
      verbosity === 'quiet',
    )}\n`,
  );
}

async function preview({ args, options, stdout }: Invocation, session: Session, target: Target): Promise<void> {
  const schedule = await findSchedule(session, target, args[0] ?? '');
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
