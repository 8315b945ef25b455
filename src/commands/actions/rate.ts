import { ExpungeError, messageOf } from '../../errors.ts';
import { parseRate, type Rate, rateText } from '../../model/rate.ts';
import type { PaceAction, PaceChange, PaceFacts } from '../../operations/change-run.ts';
import { type Invocation, jsonLines } from '../command.ts';
import { infoWriter, readBy } from '../session.ts';
import { withOperations } from '../with-operations.ts';

/** Gives a live run another rate, from any machine, within a second. Throws USAGE for a run that has ended. Repeating it changes nothing. */
export async function execute(invocation: Invocation): Promise<number> {
  const { args, options } = invocation;
  const pace = readPace(args[1] ?? '', options.burst); // a mistake costs no request
  return withOperations(invocation, 'runs', async (runs) => {
    const { id: run } = await runs.find(args[0]);
    return sayChange(invocation, await runs.changePace({ run, by: readBy(invocation), pace }));
  });
}

/** Reports the change. Returns the exit code. */
function sayChange(invocation: Invocation, change: PaceChange): number {
  const { stderr, stdout, options, toType } = invocation;
  stderr.write(`${changeText(change)}\n`);
  infoWriter(invocation)(`  Follow it: ${toType('status', change.run, '--watch')}`);
  jsonLines(stdout, options.json)('rate', change);
  return 0;
}

/** Reads the rate and the burst. Throws USAGE for a burst without a rate. */
function readPace(text: string, burst: number | undefined): PaceAction['pace'] {
  if (text !== 'none') return { rate: readRate(text), ...(burst === undefined ? {} : { burst }) };
  if (burst === undefined) return { rate: null, burst: null };
  throw new ExpungeError('USAGE', '--burst needs a rate, and "none" removes it');
}

function readRate(text: string): Rate {
  try {
    return parseRate(text);
  } catch (error) {
    throw new ExpungeError('USAGE', `${messageOf(error)}; "none" removes the rate`);
  }
}

function changeText({ run, before, ...now }: PaceChange): string {
  const [was, is] = [paceText(before), paceText(now)];
  if (was === is) return `Run ${run} has that rate already: ${is}.`;
  return `Run ${run}: ${is}; before: ${was}. It takes effect within a second.`;
}

function paceText({ rate, burst }: PaceFacts): string {
  if (rate === null) return 'no rate of its own';
  return `${rateText(parseRate(rate))}${burst === null ? '' : `, in bursts of ${burst}`}`;
}
