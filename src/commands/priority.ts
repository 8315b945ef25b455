import { oneOf } from '../config/parse-setting.ts';
import { ExpungeError, messageOf } from '../errors.ts';
import { isSealed } from '../ledger/run.ts';
import { type Priority, priorities } from '../model/priority.ts';
import { type Invocation, jsonLines, reasonOf } from './command.ts';
import { findRun, sayUnlessJson, whoAmI, withRedis } from './session.ts';

/**
 * Gives a live run another share of the workers, from any machine, within a second. Throws USAGE for a run that has ended. Doing it twice
 * changes nothing.
 */
export async function execute(invocation: Invocation): Promise<number> {
  const { args, env, options } = invocation;
  const priority = readPriority(args[1] ?? '');
  return withRedis(invocation, sayUnlessJson(invocation), async (session) => {
    const run = await findRun(session, args[0]);
    const order = { priority, by: 'operator' as const, who: whoAmI(env), reason: reasonOf(options) };
    const { state, priority: before } = await session.ledger.changePriority(run.id, Date.now(), order);
    if (state === 'missing' || isSealed(state)) throw nothingToShare(run.id, state);
    return sayChange(invocation, { run: run.id, state, priority, before: { priority: before } });
  });
}

/** A change as `--json` prints it. */
export type PriorityChange = { run: string; state: string; priority: Priority; before: { priority: Priority } };

/** Says what was changed. Returns the exit code. */
export function sayChange({ options, stderr, stdout }: Invocation, change: PriorityChange): number {
  stderr.write(`${changeText(change.run, change.before.priority, change.priority)}\n`);
  jsonLines(stdout, options.json)('priority', change);
  return 0;
}

export function readPriority(text: string): Priority {
  try {
    return oneOf(priorities)(text);
  } catch (error) {
    throw new ExpungeError('USAGE', messageOf(error));
  }
}

function nothingToShare(run: string, state: string): ExpungeError {
  return new ExpungeError('USAGE', `run ${run} is ${state}: no worker has anything to do for it`, {
    next: `see its status: expunge status ${run}`,
  });
}

function changeText(run: string, before: Priority, now: Priority): string {
  if (before === now) return `Run ${run} has that priority already: ${now}.`;
  return `Run ${run}: priority ${now}; before: ${before}. It takes effect within a second.`;
}
