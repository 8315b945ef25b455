import { exitCodes } from '../../errors.ts';
import { count } from '../../format.ts';
import { describeLeftOut } from '../../ledger/retries.ts';
import type { Run } from '../../ledger/run.ts';
import { type Selection, worthRetry } from '../../model/selection.ts';
import { makeListPlan, noListHistory } from '../../operations/plan-list.ts';
import { inherit, requireEndedForRetry } from '../../operations/retried-run.ts';
import { targetOfRun, withRetried } from '../../operations/retry-list.ts';
import { type EarlySession, findRun, withRedis } from '../../operations/session.ts';
import { startProgress } from '../../terminal/live-panel.ts';
import { type Invocation, jsonLines } from '../command.ts';
import { readCredentials } from '../credentials.ts';
import { infoWriter, lineWriter, progressStream, toListAction, writeWarnings } from '../session.ts';
import { refuseWorkerFlags, showDryRun } from './run.ts';
import { runIn } from './run-list.ts';

/** Makes a run of ids of an ended run, which the ledger has; then it continues as `run` does. Repeating the command resumes that run. */
export async function execute(invocation: Invocation): Promise<number> {
  if (invocation.options.detach) refuseWorkerFlags(invocation);
  return withRedis(invocation, infoWriter(invocation), (session) => retry(invocation, session));
}

async function retry(invocation: Invocation, session: EarlySession): Promise<number> {
  const { args, env, options } = invocation;
  const action = toListAction(invocation);
  const run = await findRun(session, args[0]);
  requireEndedForRetry(run);
  const target = targetOfRun(action, run);
  const credentials = options.dryRun ? null : readCredentials(invocation);
  const only = options.only ?? worthRetry;
  let rows = 0;
  const text = () => `Reading run ${run.id}: ${count(rows)} ids to retry`;
  const progress = startProgress(progressStream(invocation), env, text);
  const onRow = (read: number) => {
    rows = read;
  };
  const chosen = { run, only, expected: null, onRow };
  return withRetried(session, action, chosen, async (list, retries) => {
    progress.stop();
    writeLeftOut(invocation, run);
    if (list.spool.rows === 0) return sayNothing(invocation, run, only);
    if (!options.dryRun)
      return runIn(session, invocation, { action, target, credentials, list, retries, applied: null });
    const plan = makeListPlan(inherit(action, retries), target, list, { ...noListHistory, retries });
    return showDryRun(invocation, list, { plan });
  }).finally(() => progress.stop());
}

function writeLeftOut({ stderr, toType }: Invocation, run: Run): void {
  const words = describeLeftOut(run);
  if (words !== null) writeWarnings(stderr, [words], toType);
}

const inWords = new Intl.ListFormat('en-GB', { type: 'disjunction' }); // `a, b or c`

export function sayNothing(invocation: Invocation, { id }: Pick<Run, 'id'>, only: Selection): number {
  const { options, stdout } = invocation;
  lineWriter(invocation.stderr)(`Run ${id} has nothing to retry: no id is ${inWords.format(only)}. Nothing is sent.`);
  jsonLines(stdout, options.json)('nothing_to_retry', { run: id, only });
  return exitCodes.OK.exit;
}
