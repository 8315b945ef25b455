import { join } from 'node:path';
import { ExpungeError } from '../errors.ts';
import { idPath } from '../guard/check-id.ts';
import { checkMaxDeletes } from '../guard/check-max-deletes.ts';
import { readTarget } from '../guard/check-target.ts';
import type { List } from '../input/with-list.ts';
import { findUnfinishedRun } from '../ledger/create-run.ts';
import { resources } from '../ledger/outcome.ts';
import { pendingOf, type Run } from '../ledger/run.ts';
import { listOf, type Target } from '../ledger/target.ts';
import { type LimiterScope, learnedStart, readTargetState } from '../limiter/read-target.ts';
import { confirmCount } from '../terminal/ask.ts';
import { idsText, type Plan, planText } from '../terminal/plan-text.ts';
import { styleOf } from '../terminal/style.ts';
import { plural } from '../terminal/words.ts';
import { tokenSource } from '../token/open-token.ts';
import type { Invocation } from './command.ts';
import { deleteHere } from './delete-here.ts';
import { detach } from './detach.ts';
import { showDryRun } from './dry-run.ts';
import { withNamedList } from './read-list.ts';
import { type Credentials, readCredentials } from './service-options.ts';
import { type Session, sayOn, withRedis } from './session.ts';
import { submitRun } from './submit-run.ts';

/** Plan, confirm, delete, report. The same command again resumes. */
export async function execute(invocation: Invocation): Promise<number> {
  const { config, env, options } = invocation;
  const target = readTarget(config, env);
  const credentials = options.dryRun ? null : readCredentials(invocation);
  return withNamedList(invocation, async (list) => {
    checkMaxDeletes(list.spool.ids, config.maxDeletes);
    // An export that went wrong looks like this; a purge that found nothing does too, so it is no mistake.
    if (list.spool.rows === 0) invocation.stderr.write('warning: the list is empty: 0 rows\n');
    if (credentials === null) return showDryRun(invocation, list, planOf(invocation, target, list, null, null));
    return withRedis(invocation, sayOn(invocation.stderr), (session) =>
      runList({ invocation, session, target, credentials, list }),
    );
  });
}

type RunWork = { invocation: Invocation; session: Session; target: Target; credentials: Credentials; list: List };

async function runList(work: RunWork): Promise<number> {
  const { invocation, session, target, credentials, list } = work;
  const existing = await findUnfinishedRun(session.redis, listOf(target, list.spool.sha256));
  refuseUnlessResumable(existing);
  refuseOtherVerdicts(existing, invocation.config.treat);
  const learned = learnedStart(await readTargetState(session.redis, target.fp), scopesOf(invocation, list));
  const plan = planOf(invocation, target, list, existing, learned);
  invocation.stderr.write(`${planText(plan, styleOf(invocation.stderr))}\n`);
  await confirm(invocation, plan);
  const run = await submitRun(invocation, session, target, list.spool);
  if (run.detached) return detach(invocation, session, run);
  return deleteHere({ invocation, session, target, credentials, run, outputFolder: runFolder(invocation, run.id) });
}

/** Where the report files of a run stand. */
function runFolder({ config }: Invocation, run: string): string {
  return join(config.stateDir, 'runs', run);
}

function refuseUnlessResumable(existing: Run | null): void {
  if (existing?.state !== 'cancelling') return;
  throw new ExpungeError('USAGE', `run ${existing.id} of the same list is being cancelled`, {
    next: `wait until it is: expunge cancel ${existing.id} --yes`,
  });
}

/** A run has one table from its first id to its last, or its outcomes would not mean the same. */
function refuseOtherVerdicts(existing: Run | null, treat: string): void {
  if (existing === null || treat === '' || treat === existing.treat) return;
  const before = existing.treat === '' ? 'without --treat' : `with --treat ${existing.treat}`;
  throw new ExpungeError('USAGE', `run ${existing.id} of the same list was started ${before}, not with ${treat}`, {
    next: `leave --treat away to go on with it, or end it first: expunge cancel ${existing.id}`,
  });
}

/** The limiters that the requests of the list would go by. */
function scopesOf({ config }: Invocation, { spool }: List): LimiterScope[] {
  return config.separateLimits ? resources.filter((resource) => spool.ids[resource] > 0) : ['all'];
}

function planOf(
  { config }: Invocation,
  target: Target,
  list: List,
  existing: Run | null,
  learned: Plan['learned'],
): Plan {
  const { spool, rejectsFile } = list;
  const { first } = spool;
  return {
    files: spool.files,
    rows: spool.rows,
    ids: spool.ids,
    duplicates: spool.duplicates,
    rejected: spool.rejectedByCode,
    rejectsFile,
    protected: spool.protected,
    limited: spool.limited ? (config.limit ?? null) : null,
    baseUrl: target.baseUrl,
    account: target.account,
    tokenSource: tokenSource(config),
    firstUrl: first === null ? null : target.baseUrl + idPath(first.resource, first.id),
    treat: existing?.treat ?? config.treat,
    expectAbsent: config.expectAbsent || (existing?.expectAbsent ?? false),
    rate: config.rate ?? existing?.rate ?? null,
    learned,
    maxConcurrency: config.maxConcurrency,
    existing: existing && existingOf(existing),
  };
}

function existingOf(run: Run): Plan['existing'] {
  return { runId: run.id, state: run.state, reason: run.reason, left: pendingOf(run), who: run.who };
}

/** The count somebody has to type is what is left to delete: of a resumed run less than the list holds. */
async function confirm({ args, options, stdin, stderr, env }: Invocation, plan: Plan): Promise<void> {
  const expected = plan.existing?.left ?? plan.ids.annotations + plan.ids.views;
  if (expected === 0) return;
  const host = new URL(plan.baseUrl).host;
  const what = plan.existing
    ? `the ${plural(expected, 'ids')} left of run ${plan.existing.runId}`
    : `${idsText(plan.ids)} on ${host}`;
  const confirm = (options.confirm as number | undefined) ?? null;
  const question = { expected, what, yes: options.yes === true, confirm };
  await confirmCount(question, { stdin, stderr, env, stdinIsData: args.includes('-') });
}
