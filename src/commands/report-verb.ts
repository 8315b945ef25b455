import { ExpungeError } from '../errors.ts';
import { isSealed } from '../ledger/run.ts';
import { sealTally } from '../ledger/tally.ts';
import { type Invocation, jsonLines } from './command.ts';
import { reportRun } from './report.ts';
import { findRun, sayOf, sayOn, withRedis } from './session.ts';

export async function execute(invocation: Invocation): Promise<number> {
  const { args, options, stdout, stderr } = invocation;
  refuseMixture(invocation);
  const say = sayOn(stderr);
  const print = jsonLines(stdout, options.json);
  return withRedis(invocation, sayOf(invocation), async (session) => {
    const found = await findRun(session, args[0]);
    const run = isSealed(found.state) ? await sealTally(session.redis, found) : found;
    const { format = 'csv', output = null, verify = false, spreadsheetSafe = false } = options as Record<string, never>;
    return reportRun({ redis: session.redis, run, format, output, verify, spreadsheetSafe, out: stdout, say, print });
  });
}

/** One stream holds the report or what is told about it. */
function refuseMixture({ options }: Invocation): void {
  if (!options.json || options.output !== undefined || options.verify === true) return;
  throw new ExpungeError('USAGE', '--json tells what --output or --verify did; here stdout holds the report itself', {
    next: 'for a report as JSON: --format ndjson',
  });
}
