import { ExpungeError } from '../errors.ts';
import { count, isoTime } from '../format.ts';
import { chunkSizes, readChunks } from '../input/chunk-ids.ts';
import type { Spool } from '../input/spool.ts';
import { changeRules } from '../ledger/change-rules.ts';
import { type BeforeStart, claimList, planRun, writeRun } from '../ledger/create-run.ts';
import { noteRetry } from '../ledger/retries.ts';
import { type Run, readRun } from '../ledger/run.ts';
import {
  givenRules,
  isSameRule,
  isSet,
  noRules,
  type RuleName,
  type RunRules,
  rowOf,
  ruleNames,
  ruleText,
} from '../ledger/run-rules.ts';
import { chunkSize } from '../model/row.ts';
import { quoteForShell } from '../model/shell-word.ts';
import type { Target } from '../model/target.ts';
import type { RedisClient } from '../redis/client.ts';
import { startProgress } from '../terminal/live-panel.ts';
import { commandLine } from '../terminal/style.ts';
import { type AppliedPlan, claimFor, notedPlan } from './applied-plan.ts';
import { type Invocation, reasonOf } from './command.ts';
import { progressOn, type Session, whoAmI } from './session.ts';

/** Told of a run before it is written, so that an order over HTTP that breaks off is not given for a second one. */
type OnRun = (run: string) => Promise<void>;

/**
 * Writes the list to Redis as a run and returns it, or returns the unfinished run of this list. Repeating it after a crash completes the run.
 * `retryOf`: the run whose ids these are, or ''; the record of each names the other. `applied`: the plan that a new run carries out. `accept` is
 * called with the run as it was written, by this or by another order, before anything of it is changed: it throws where the run is not to be touched.
 */
export async function submitRun(
  invocation: Invocation,
  { redis }: Session,
  target: Target,
  spool: Spool,
  order: { retryOf: string; applied: AppliedPlan | null; accept(run: Run): Promise<void> },
): Promise<Run> {
  const { argv, config, options } = invocation;
  refusePassedMoment(options);
  const { retryOf, applied, accept } = order;
  const { who, reason: note } = orderOf(invocation);
  const { detach, onRun } = options as { detach?: boolean; onRun?: OnRun };
  const isTyped = argv.length > 0; // an order over HTTP has no line to type
  const command = isTyped ? `cd ${quoteForShell(process.cwd())} && ${commandLine(argv)}` : '';
  const plan = planRun(config, target, spool, { note, retryOf, who, detached: detach === true, command, options });
  const id = await claimList(redis, plan.list, Date.now());
  await onRun?.(id);
  const link = async () => {
    const retry = { at: Date.now(), action: 'retry', ...orderOf(invocation) };
    if (retryOf !== '') await noteRetry(redis, retryOf, id, retry);
    if (applied !== null) await claimFor(redis, target, applied, id);
  };
  let chunks = 0;
  const progress = startProgress(
    progressOn(invocation),
    invocation.env,
    () => `Writing the list to Redis: ${count(chunks * chunkSize)} ids`,
  );
  const onProgress = (written: number) => {
    chunks = written;
  };
  const before: BeforeStart = { link, applied: applied && notedPlan(invocation, applied) };
  try {
    await writeRun(redis, id, plan, readChunks(spool, chunkSizes(config.canary)), Date.now(), onProgress, before);
  } finally {
    progress.stop();
  }
  const run = await written(redis, id);
  if (options.newRunOnly === true) refuseOtherOrder(run, plan);
  await accept(run);
  const given = givenRules(invocation);
  refuseFixedRules(run, given); // another command may have made it meanwhile
  return changeRules(redis, run, given, { at: Date.now(), ...orderOf(invocation) });
}

/** Throws USAGE where the moment of --stop-at came before the order was confirmed: a resumed run goes on past one that has come. */
function refusePassedMoment({ stopAt }: Invocation['options']): void {
  if (stopAt === undefined || stopAt === 0 || Number(stopAt) > Date.now()) return;
  throw new ExpungeError('USAGE', `the moment of --stop-at, ${isoTime(Number(stopAt))}, is over; nothing was sent`, {
    next: 'give one that is to come, or none',
  });
}

/** Throws GUARD where another order wrote the run, with other rules: the one that was confirmed holds, or none. */
function refuseOtherOrder(run: Run, ordered: RunRules): void {
  const others = ruleNames.filter((name) => !isSameRule(name, run, ordered));
  if (others.length === 0) return;
  const names = others.map((name) => rowOf(name).flag).join(', ');
  throw new ExpungeError('GUARD', `run ${run.id} of these ids was begun with another ${names}`, {
    next: `see what becomes of it, or cancel it first: expunge cancel ${run.id}`,
  });
}

/** Throws USAGE where a command gives an unfinished run another value of a rule that a run keeps from its first id to its last. */
export function refuseFixedRules(run: Run | null, given: Partial<RunRules>): void {
  if (run === null) return;
  const after: RunRules = { ...noRules, ...given };
  const isOther = (name: RuleName) =>
    rowOf(name).resume === 'refuse' && given[name] !== undefined && !isSameRule(name, run, after);
  const other = ruleNames.find(isOther);
  if (other === undefined) return;
  const { flag } = rowOf(other);
  const before = isSet(run, other) ? `with --${flag} ${ruleText(run, other)}` : `without --${flag}`;
  throw new ExpungeError(
    'USAGE',
    `run ${run.id} of the same list was started ${before}, not with ${ruleText(after, other)}`,
    { next: `omit --${flag} to resume it, or cancel it first: expunge cancel ${run.id}` },
  );
}

async function written(redis: RedisClient, id: string): Promise<Run> {
  const run = await readRun(redis, id);
  if (run === null) throw new ExpungeError('INTERNAL', `run ${id} vanished from Redis while it was written`);
  return run;
}

function orderOf({ env, options }: Invocation) {
  return { by: 'operator', who: whoAmI(env), reason: reasonOf(options) } as const;
}
