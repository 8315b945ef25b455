import { ExpungeError } from '../errors.ts';
import { plural } from '../format.ts';
import { removeSpool } from '../input/spool-folder.ts';
import type { List } from '../input/with-list.ts';
import { findRunOfList } from '../ledger/create-run.ts';
import { runFolder } from '../ledger/kept-files.ts';
import { findRunsBeside } from '../ledger/list-runs.ts';
import { isOver, isSealed, type Run } from '../ledger/run.ts';
import { type LimiterScope, readStart } from '../limiter/read-target.ts';
import { readStops, type Stop } from '../limiter/stop.ts';
import { resources } from '../model/outcome.ts';
import { listOf, type Target } from '../model/target.ts';
import { confirmCount } from '../terminal/ask.ts';
import { idsText, type Plan, planText } from '../terminal/plan-text.ts';
import { styleOf } from '../terminal/style.ts';
import { readStopFile } from '../worker/stop-file.ts';
import { isAttended } from './attended.ts';
import type { Invocation } from './command.ts';
import { deleteHere } from './delete-here.ts';
import { detach } from './detach.ts';
import { refuseOtherRelease } from './find-run.ts';
import { finishEnded } from './finish-run.ts';
import { planOf } from './plan-of.ts';
import { type Credentials, refuseLoneBurst } from './service-options.ts';
import { type Session, sayOn, withRedis } from './session.ts';
import { submitRun } from './submit-run.ts';

type Work = { target: Target; credentials: Credentials; list: List };

/** Makes or finds the run of a list, lets somebody confirm it, and does it or leaves it to workers. The same call again resumes. */
export function runList(invocation: Invocation, work: Work): Promise<number> {
  return withRedis(invocation, sayOn(invocation.stderr), (session) => runIn(session, invocation, work), true);
}

async function runIn(session: Session, invocation: Invocation, { target, credentials, list }: Work): Promise<number> {
  const last = await findRunOfList(session.redis, listOf(target, list.spool.sha256));
  if (last !== null && !isOver(last)) refuseOtherRelease(last);
  const folderOf = ({ id }: Run) => runFolder(invocation.config.stateDir, id);
  if (last !== null && isSealed(last.state) && !isOver(last))
    return finishEnded({ invocation, session, run: last, outputFolder: folderOf(last) });
  const existing = last !== null && !isSealed(last.state) ? last : null;
  refuseUnlessResumable(existing);
  refuseOtherVerdicts(existing, invocation.config.treat);
  refuseLoneBurst(invocation, existing?.rate ?? null);
  await refuseOtherWay(invocation, session, existing);
  const learned = await readStart(session.redis, target.fp, scopesOf(invocation, list));
  const stop = await stopOf(invocation, session, target);
  const isJoined = existing !== null && (await isAttended(session, existing)) === true;
  const beside = existing === null ? await findRunsBeside(session.redis, target, list.spool) : [];
  const plan = planOf(invocation, target, list, { learned, stop, existing, isJoined, last, beside });
  invocation.stderr.write(`${planText(plan, styleOf(invocation.stderr))}\n`);
  await confirm(invocation, plan);
  const run = await submitRun(invocation, session, target, list.spool);
  await removeSpool(list.spool.folder); // all of it is in Redis by now, and a run may take days
  refuseOtherVerdicts(run, invocation.config.treat); // another command may have made it meanwhile
  await refuseOtherWay(invocation, session, run);
  if (run.detached) return detach(invocation, session, run);
  return deleteHere({ invocation, session, target, credentials, run, outputFolder: folderOf(run) });
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

/** A run is deleted by its command or by workers from its first id to its last, unless somebody hands it over. */
async function refuseOtherWay({ options }: Invocation, session: Session, run: Run | null): Promise<void> {
  const wanted = options.detach === true;
  if (run === null || run.detached === wanted) return;
  const of = `run ${run.id} of the same list`;
  const follow = `expunge status ${run.id} --watch`;
  if (!wanted) {
    throw new ExpungeError(
      'USAGE',
      `${of} was left to workers with --detach; this command would not wait for its end`,
      {
        next: `follow it: ${follow}; or make sure that it runs: the same command with --detach`,
      },
    );
  }
  if ((await isAttended(session, run)) === true) {
    throw new ExpungeError('USAGE', `${of} is being deleted by another command, without --detach`, {
      next: `follow it: ${follow}; or stop that command with Ctrl-C, then: expunge resume ${run.id} --detach`,
    });
  }
  throw new ExpungeError('USAGE', `${of} was started without --detach and is not finished`, {
    next: `leave it to workers: expunge resume ${run.id} --detach; or go on here: the same command without --detach`,
  });
}

/** The limiters that the requests of the list would go by. */
function scopesOf({ config }: Invocation, { spool }: List): LimiterScope[] {
  return config.separateLimits ? resources.filter((resource) => spool.ids[resource] > 0) : ['all'];
}

/** The count somebody has to type is what is left to delete: of a resumed run less than the list holds. */
async function confirm({ args, options, stdin, stderr, env }: Invocation, plan: Plan): Promise<void> {
  const expected = plan.existing?.left ?? plan.ids.annotations + plan.ids.views;
  const confirm = (options.confirm as number | undefined) ?? null;
  if (expected === 0 && (confirm === null || plan.existing !== null)) return; // an export that went wrong may hold nothing
  const host = new URL(plan.baseUrl).host;
  const what = plan.existing
    ? `the ${plural(expected, 'ids')} left of run ${plan.existing.runId}`
    : `${idsText(plan.ids)} on ${host}${plan.beside.map(({ runId }) => `, beside run ${runId}`).join('')}`;
  const question = { expected, what, yes: options.yes === true, confirm };
  await confirmCount(question, { stdin, stderr, env, stdinIsData: args.includes('-') });
}
