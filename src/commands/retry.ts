import { readTarget } from '../config/check-target.ts';
import { ExpungeError, exitCodes } from '../errors.ts';
import { count, plural } from '../format.ts';
import { inputOptionsOf } from '../input/input-options.ts';
import { protectFileOf, readProtected } from '../input/read-protected.ts';
import { type Spool, spoolRows } from '../input/spool.ts';
import { withSpoolFolder } from '../input/with-list.ts';
import { readRetried } from '../ledger/retries.ts';
import type { Run } from '../ledger/run.ts';
import { sealTally } from '../ledger/tally.ts';
import { type OutcomeCounts, perOutcome, sumOutcomes } from '../model/outcome.ts';
import type { Row } from '../model/row.ts';
import { type Selection, worthRetry } from '../model/selection.ts';
import type { Target } from '../model/target.ts';
import { startProgress } from '../terminal/live-panel.ts';
import { targetFlags } from '../terminal/stop-text.ts';
import { type Invocation, jsonLines } from './command.ts';
import { readCredentials, refuseWithoutBaseUrl } from './credentials.ts';
import { checkList, noListHistory, planOf } from './plan.ts';
import { inherit, refuseLive } from './retried-run.ts';
import { refuseOfWorkers, showDryRun } from './run.ts';
import { runIn } from './run-list.ts';
import { type EarlySession, findRun, progressOn, type Session, sayOf, sayOn, withRedis } from './session.ts';

/** Makes a run of ids of an ended one, which the ledger has: then it goes the way of `run`. Repeating the command resumes that run. */
export async function execute(invocation: Invocation): Promise<number> {
  if (invocation.options.detach) refuseOfWorkers(invocation);
  return withRedis(invocation, sayOf(invocation), (session) => retry(invocation, session));
}

async function retry(invocation: Invocation, session: EarlySession): Promise<number> {
  const { args, config, options } = invocation;
  const found = await findRun(session, args[0]);
  refuseLive(found);
  const target = targetOf(invocation, found);
  const credentials = options.dryRun || options.sentByWorkers ? null : readCredentials(invocation);
  const run = await sealTally(session.redis, found);
  const only = (options.only as Selection | undefined) ?? worthRetry;
  return withSpoolFolder(config.stateDir, async (folder) => {
    const { spool, chosen } = await spoolRetried(invocation, session, { run, only, folder });
    if (spool.rows === 0) return sayNothing(invocation, run, only);
    checkList(invocation, spool);
    refuseOtherCount(run, chosen, options.expectChosen as number | undefined);
    const list = { spool, rejectsFile: null, openEnd: null };
    const retries = { run, chosen };
    if (!options.dryRun) return runIn(session, invocation, { target, credentials, list, retries, applied: null });
    const plan = planOf(inherit(invocation, retries), target, list, { ...noListHistory, retries });
    return showDryRun(invocation, list, plan);
  });
}

/** Throws GUARD unless as many ids are chosen as were shown with the run; those that are protected by now count, too. */
function refuseOtherCount({ id }: Run, chosen: OutcomeCounts, expected: number | undefined): void {
  const ids = sumOutcomes(chosen);
  if (expected === undefined || ids === expected) return;
  throw new ExpungeError('GUARD', `run ${id} has ${plural(ids, 'ids')} of that to retry, not ${expected}`, {
    next: 'look at the run again, and type how many it has',
  });
}

/** The target of the settings, which has to be that of the run: the token is sent to no address that only Redis names. */
export function targetOf({ config, env }: Invocation, { id, baseUrl, account, fp }: Run): Target {
  refuseWithoutBaseUrl(config, `run ${id}`, { baseUrl, account });
  const target = readTarget(config, env);
  if (target.fp === fp) return target;
  const of = (url: string, name: string) => `${url}${name && ` as account ${name}`}`;
  const [run, named] = [of(baseUrl, account), of(target.baseUrl, target.account)];
  throw new ExpungeError('USAGE', `run ${id} deleted on ${run}, but the settings name ${named}; nothing was sent`, {
    next: `add ${targetFlags({ baseUrl, account })}`,
  });
}

type Reading = { run: Run; only: Selection; folder: string };

/** Writes the chosen rows to a spool, as if they were read from the files of their run. */
async function spoolRetried(
  invocation: Invocation,
  { redis }: Session,
  { run, only, folder }: Reading,
): Promise<{ spool: Spool; chosen: OutcomeCounts }> {
  const { config, env } = invocation;
  const { limit = null } = config;
  const protectFile = protectFileOf(config);
  const chosen = perOutcome(() => 0);
  let rows = 0;
  const progress = startProgress(
    progressOn(invocation),
    env,
    () => `Reading run ${run.id}: ${count(rows)} ids to retry`,
  );
  async function* batches(): AsyncGenerator<Row[]> {
    for await (const page of readRetried(redis, run, only)) {
      for (const { outcome } of page) if (rows++ < (limit ?? Number.POSITIVE_INFINITY)) chosen[outcome] += 1;
      yield page;
    }
  }
  const protectedIds = protectFile && readProtected(protectFile, inputOptionsOf(config));
  try {
    const spool = await spoolRows(batches(), folder, { files: run.files, protectedIds, limit });
    return { spool, chosen };
  } finally {
    progress.stop();
  }
}

export function sayNothing(invocation: Invocation, { id }: Run, only: Selection): number {
  const { options, stdout } = invocation;
  sayOn(invocation.stderr)(`Run ${id} has nothing to retry: no id is ${only.join(' or ')}. Nothing is sent.`);
  jsonLines(stdout, options.json)('nothing_to_retry', { run: id, only });
  return exitCodes.OK.exit;
}
