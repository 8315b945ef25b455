import { isSealed } from '../ledger/run.ts';
import { sealTally } from '../ledger/tally.ts';
import type { Invocation } from './command.ts';
import { reportRun } from './report.ts';
import { findRun, sayOn, withRedis } from './session.ts';

export async function execute(invocation: Invocation): Promise<number> {
  const { args, options, stdout, stderr } = invocation;
  const say = sayOn(stderr);
  return withRedis(invocation, say, async (session) => {
    const found = await findRun(session, args[0]);
    const run = isSealed(found.state) ? await sealTally(session.redis, found) : found;
    const { format = 'csv', output = null, verify = false, spreadsheetSafe = false } = options as Record<string, never>;
    return reportRun({ redis: session.redis, run, format, output, verify, spreadsheetSafe, out: stdout, say });
  });
}
