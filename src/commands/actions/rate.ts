import { ExpungeError, messageOf } from '../../errors.ts';
import { parseRate, type Rate, rateText } from '../../model/rate.ts';
import type { RateChange } from '../../operations/change-rate.ts';
import { type Invocation, jsonLines } from '../command.ts';
import { infoWriter, readBy } from '../session.ts';
import { withOperations } from '../with-operations.ts';

/** Gives a live run another rate, from any machine, within a second. Throws USAGE for a run that has ended. Repeating it changes nothing. */
export async function execute(invocation: Invocation): Promise<number> {
  const { args } = invocation;
  const rate = readRate(args[1] ?? ''); // a mistake costs no request
  return withOperations(invocation, 'runs', async (runs) => {
    const { id: run } = await runs.find(args[0]);
    return sayChange(invocation, await runs.changeRate({ run, by: readBy(invocation), rate }));
  });
}

/** Reports the change. Returns the exit code. */
function sayChange(invocation: Invocation, change: RateChange): number {
  const { stderr, stdout, options, toType } = invocation;
  stderr.write(`${changeText(change)}\n`);
  infoWriter(invocation)(`  Follow it: ${toType('status', change.run, '--watch')}`);
  jsonLines(stdout, options.json)('rate', change);
  return 0;
}

/** Reads the rate; null = none. */
function readRate(text: string): Rate | null {
  if (text === 'none') return null;
  try {
    return parseRate(text);
  } catch (error) {
    throw new ExpungeError('USAGE', `${messageOf(error)}; "none" removes the rate`);
  }
}

function changeText({ run, before, rate }: RateChange): string {
  const [was, is] = [describeRate(before.rate), describeRate(rate)];
  if (was === is) return `Run ${run} has that rate already: ${is}.`;
  return `Run ${run}: ${is}; before: ${was}. It takes effect within a second.`;
}

function describeRate(rate: string | null): string {
  return rate === null ? 'no rate of its own' : rateText(parseRate(rate));
}
