import { ExpungeError } from '../errors.ts';
import { plural } from '../format.ts';
import { readChunks, settledIn } from '../input/chunk-ids.ts';
import { formatOf } from '../input/input-options.ts';
import { removeSpool, type Spool } from '../input/spool.ts';
import type { List } from '../input/with-list.ts';
import { findRunOfList } from '../ledger/create-run.ts';
import { runFolder } from '../ledger/file-retention.ts';
import { findOverlappingRuns, type ListedRun } from '../ledger/list-runs.ts';
import { isOver, isSealed, pendingOf, type Run, readRun } from '../ledger/run.ts';
import { exitOf, summaryOf } from '../ledger/summary.ts';
import { type LimiterScope, readStart } from '../limiter/read-target.ts';
import { readStops, type Stop, stopAdvice } from '../limiter/stop.ts';
import { idPath } from '../model/check-id.ts';
import { resources, sumIds } from '../model/resource.ts';
import { stdinName } from '../model/row.ts';
import { listOf, type Target } from '../model/target.ts';
import { createFeeder, startDetachedRun } from '../queue/feeder.ts';
import { openQueue, sharedQueueName } from '../queue/queue.ts';
import { confirmCount } from '../terminal/ask.ts';
import { endingText } from '../terminal/ending.ts';
import { idsText, type Plan, planText } from '../terminal/plan-text.ts';
import { commandFor } from '../terminal/stop-text.ts';
import { plainLine, styleOf } from '../terminal/style.ts';
import { tokenSource } from '../token/open-token.ts';
import { readStopFile } from '../worker/stop-file.ts';
import { type Invocation, reasonOf } from './command.ts';
import { deleteInForeground } from './delete-in-foreground.ts';
import { endingOf, finishEnded } from './finish-run.ts';
import { hasForegroundCommand } from './foreground.ts';
import {
  type Credentials,
  refuseLoneBurst,
  refuseOtherRelease,
  type Session,
  sayOf,
  whoAmI,
  withRedis,
} from './session.ts';
import { withStandstill } from './status.ts';
import { submitRun } from './submit-run.ts';

type Work = { target: Target; credentials: Credentials; list: List };

/** Makes or finds the run of a list, lets somebody confirm it, and does it or leaves it to workers. The same call again resumes. */
export function runList(invocation: Invocation, work: Work): Promise<number> {
  return withRedis(invocation, sayOf(invocation), (session) => runIn(session, invocation, work), true);
}

async function runIn(session: Session, invocation: Invocation, { target, credentials, list }: Work): Promise<number> {
  const last = await findRunOfList(session.redis, listOf(target, list.spool.sha256));
  if (last !== null && !isOver(last)) refuseOtherRelease(last);
  const folderOf = ({ id }: Run) => runFolder(invocation.config.stateDir, id);
  if (last !== null && isSealed(last.state) && !isOver(last))
    return finishEnded({ invocation, session, run: last, outputFolder: folderOf(last) });
  const existing = last !== null && !isSealed(last.state) ? last : null;
  refuseUnlessResumable(existing);
  refuseOtherOnStatus(existing, invocation.config.onStatus);
  refuseLoneBurst(invocation, existing?.rate ?? null);
  await refuseOtherMode(invocation, session, existing);
  const learned = await readStart(session.redis, target.fp, scopesOf(invocation, list));
  const stop = await stopOf(invocation, session, target);
  const isJoined = existing !== null && (await hasForegroundCommand(session, existing)) === true;
  const overlapping = existing === null ? await findOverlappingRuns(session.redis, target, list.spool) : [];
  const plan = planOf(invocation, target, list, { learned, stop, existing, isJoined, last, overlapping });
  showPlan(invocation, plan);
  await confirm(invocation, plan);
  const run = await submitRun(invocation, session, target, list.spool);
  await removeSpool(list.spool.folder); // all of it is in Redis by now, and a run may take days
  refuseOtherOnStatus(run, invocation.config.onStatus); // another command may have made it meanwhile
  await refuseOtherMode(invocation, session, run);
  if (run.detached) return detach(invocation, session, run);
  return deleteInForeground({ invocation, session, target, credentials, run, outputFolder: folderOf(run) });
}

/** With --quiet only to whom it is asked about: nobody can agree to what he does not see. */
function showPlan({ options, stderr, verbosity }: Invocation, plan: Plan): void {
  const isAsked = options.yes !== true && options.confirm === undefined;
  if (verbosity !== 'quiet' || isAsked) stderr.write(`${planText(plan, styleOf(stderr))}\n`);
}

/** What the requests of the run would wait for. The file of a detached run's workers is their own matter. */
async function stopOf({ config, options }: Invocation, { redis }: Session, target: Target): Promise<Stop | null> {
  const { target: stop } = await readStops(redis, target.fp);
  if (stop !== null || options.detach || config.stopFile === undefined) return stop;
  return readStopFile(config.stopFile, Date.now());
}

function refuseUnlessResumable(existing: Run | null): void {
  if (existing?.state !== 'cancelling') return;
  throw new ExpungeError('USAGE', `run ${existing.id} of the same list is being cancelled`, {
    next: `wait for it: expunge cancel ${existing.id} --yes`,
  });
}

/** A run has one table from its first id to its last, or its outcomes would not mean the same. */
function refuseOtherOnStatus(existing: Run | null, onStatus: string): void {
  if (existing === null || onStatus === '' || onStatus === existing.onStatus) return;
  const before = existing.onStatus === '' ? 'without --on-status' : `with --on-status ${existing.onStatus}`;
  throw new ExpungeError('USAGE', `run ${existing.id} of the same list was started ${before}, not with ${onStatus}`, {
    next: `omit --on-status to resume it, or cancel it first: expunge cancel ${existing.id}`,
  });
}

/** A run is deleted by its command or by workers from its first id to its last, unless somebody hands it over. */
async function refuseOtherMode({ options }: Invocation, session: Session, run: Run | null): Promise<void> {
  const wanted = options.detach === true;
  if (run === null || run.detached === wanted) return;
  const of = `run ${run.id} of the same list`;
  const follow = `expunge status ${run.id} --watch`;
  if (!wanted) {
    throw new ExpungeError('USAGE', `${of} was detached; this command would not wait for it`, {
      next: `follow it: ${follow}; or make sure it runs: the same command with --detach`,
    });
  }
  if ((await hasForegroundCommand(session, run)) === true) {
    throw new ExpungeError('USAGE', `${of} is being deleted by another command in the foreground`, {
      next: `follow it: ${follow}; or stop that command with Ctrl-C, then: expunge resume ${run.id} --detach`,
    });
  }
  throw new ExpungeError('USAGE', `${of} was started in the foreground and is not finished`, {
    next: `detach it: expunge resume ${run.id} --detach; or resume it here: the same command without --detach`,
  });
}

/** The limiters that the requests of the list would go by. */
function scopesOf({ config }: Invocation, { spool }: List): LimiterScope[] {
  return config.separateLimits ? resources.filter((resource) => spool.ids[resource] > 0) : ['all'];
}

/** The count somebody has to type is what is left to delete: of a resumed run less than the list holds. */
async function confirm({ args, options, stdin, stderr, env }: Invocation, plan: Plan): Promise<void> {
  const expected = plan.existing?.left ?? sumIds(plan.ids);
  const confirm = (options.confirm as number | undefined) ?? null;
  if (expected === 0 && (confirm === null || plan.existing !== null)) return; // an export that went wrong may hold nothing
  const host = new URL(plan.baseUrl).host;
  const what = plan.existing
    ? `the ${plural(expected, 'ids')} left of run ${plan.existing.runId}`
    : `${idsText(plan.ids)} on ${host}${plan.overlapping.map(({ runId }) => `, beside run ${runId}`).join('')}`;
  const question = { expected, what, yes: options.yes === true, confirm };
  await confirmCount(question, { stdin, stderr, env, stdinIsData: args.includes('-') });
}

/** Leaves a run to the workers of its target, and warns if none is alive. Repeating it is harmless. */
export async function detach(
  { argv, env, options, stdout, stderr, verbosity }: Invocation,
  session: Session,
  run: Run,
): Promise<number> {
  const { redis, ledger, queueConnection } = session;
  const queue = openQueue({ fp: run.fp, name: sharedQueueName, connection: queueConnection });
  try {
    const by = { who: whoAmI(env), reason: reasonOf(options) };
    await startDetachedRun(ledger, createFeeder(ledger, queue), run, by);
    const workers = await queue.workers();
    const now = (await readRun(redis, run.id)) ?? run;
    stderr.write(`${endingText(endingOf(now, 'detached', { argv }), styleOf(stderr), verbosity === 'quiet')}\n`);
    warnIfNoWorkers(stderr, workers, run);
    const { target: stop } = await readStops(redis, run.fp);
    if (stop !== null)
      stderr.write(`${plainLine(`warning: the run is stopped. ${stopAdvice(stop, commandFor('start-all', run))}`)}\n`);
    if (options.json)
      stdout.write(`${JSON.stringify(summaryOf(withStandstill(now, stop), exitOf(now), Date.now()))}\n`);
    return 0;
  } finally {
    await queue.close();
  }
}

/** What is known of the list in Redis: the run that it would go on with, its last run, and unfinished runs of the same files. */
type ListHistory = Pick<Plan, 'learned' | 'stop'> & {
  existing: Run | null;
  isJoined: boolean;
  last: Run | null;
  overlapping: readonly ListedRun[];
};

export const noListHistory: ListHistory = {
  learned: null,
  stop: null,
  existing: null,
  isJoined: false,
  last: null,
  overlapping: [],
};

/** What a run of the list would do, as it is shown before anything is sent. */
export function planOf({ config, env }: Invocation, target: Target, list: List, known: ListHistory): Plan {
  const { spool, rejectsFile } = list;
  const { first } = spool;
  const { learned, stop, existing, isJoined, last, overlapping } = known;
  return {
    files: spool.files,
    rows: spool.rows,
    ids: spool.ids,
    samples: samplesOf(spool),
    column: hasColumns(spool.files, config) && !config.noHeader ? config.column : null,
    rejected: spool.rejectedByCode,
    rejectsFile,
    settled: settledIn(spool),
    protectedRead: spool.protectedList?.ids ?? null,
    limited: spool.limited ? (config.limit ?? null) : null,
    baseUrl: target.baseUrl,
    account: target.account,
    tokenSource: tokenSource(config, env),
    firstUrl: first === null ? null : target.baseUrl + idPath(first.resource, first.id),
    onStatus: existing?.onStatus ?? config.onStatus,
    expectAbsent: config.expectAbsent || (existing?.expectAbsent ?? false),
    rate: config.rate ?? existing?.rate ?? null,
    rateBefore: existing?.rate ?? null,
    learned,
    maxConcurrency: config.maxConcurrency,
    stop,
    existing: existing && { ...existingOf(existing), isJoined },
    previous: last !== null && isSealed(last.state) ? beforeOf(last) : null,
    overlapping: overlapping.map((run) => ({
      ...existingOf(run),
      files: run.files,
      protectedRead: run.protectedRead,
    })),
  };
}

const shownSamples = 3;

/** The first ids that would be sent. */
function samplesOf(spool: Spool): string[] {
  for (const part of readChunks(spool, shownSamples)) if ('ids' in part) return [...part.ids];
  return [];
}

function hasColumns(files: readonly string[], { format }: Invocation['config']): boolean {
  const formats = files.map((name) => formatOf({ name, isStdin: name === stdinName }, format ?? null));
  return formats.some((used) => used !== 'lines');
}

function existingOf(run: ListedRun) {
  return { runId: run.id, state: run.state, reason: run.reason, left: pendingOf(run), who: run.who };
}

function beforeOf({ id, state, endedAt, counts }: Run): Plan['previous'] {
  return { runId: id, state, endedAt, counts };
}

/** For a run that is left to workers of which there are none, or null if Redis doesn't tell. */
export function warnIfNoWorkers(stderr: NodeJS.WritableStream, workers: number | null, target: Named): void {
  if (workers !== null && workers > 0) return;
  const words =
    workers === null
      ? `${unknownLiveness('worker of this target')}; if none is,`
      : 'no worker of this target is alive;';
  stderr.write(`warning: ${words} start one: ${commandFor('worker', target)}\n`);
}

type Named = Pick<Target, 'baseUrl' | 'account'>;

/** For somebody who may be alive: CLIENT LIST, which would tell, is not allowed to every login. */
export function unknownLiveness(who: string): string {
  return `this Redis does not say whether a ${who} is alive (CLIENT LIST)`;
}
