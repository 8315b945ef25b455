import { oneOf } from '../../config/parse-setting.ts';
import { ExpungeError, messageOf } from '../../errors.ts';
import { type Priority, priorities } from '../../model/priority.ts';
import type { PriorityChange } from '../../operations/change-run.ts';
import { type Invocation, jsonLines } from '../command.ts';
import { readBy } from '../session.ts';
import { withOperations } from '../with-operations.ts';

/**
 * Gives a live run another share of the workers, from any machine, within a second. Throws USAGE for a run that has ended. Repeating it changes
 * nothing.
 */
export async function execute(invocation: Invocation): Promise<number> {
  const { args, options, stderr, stdout } = invocation;
  const priority = readPriority(args[1] ?? ''); // a mistake costs no request
  return withOperations(invocation, 'runs', async (runs) => {
    const { id: run } = await runs.find(args[0]);
    const change = await runs.changePriority({ run, by: readBy(invocation), priority });
    stderr.write(`${changeText(change)}\n`);
    jsonLines(stdout, options.json)('priority', change);
    return 0;
  });
}

function readPriority(text: string): Priority {
  try {
    return oneOf(priorities)(text);
  } catch (error) {
    throw new ExpungeError('USAGE', messageOf(error));
  }
}

function changeText({ run, before, priority }: PriorityChange): string {
  if (before.priority === priority) return `Run ${run} has that priority already: ${priority}.`;
  return `Run ${run}: priority ${priority}; before: ${before.priority}. It takes effect within a second.`;
}
