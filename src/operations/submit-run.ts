import { ExpungeError } from '../errors.ts';
import { isoTime } from '../format.ts';
import { chunkSizes, readChunks } from '../input/chunk-ids.ts';
import type { Spool } from '../input/spool.ts';
import { changeRules } from '../ledger/change-rules.ts';
import { type BeforeStart, claimList, planRun, writeRun } from '../ledger/create-run.ts';
import { noteRetry } from '../ledger/retries.ts';
import { type Run, readRun } from '../ledger/run.ts';
import {
  findRule,
  givenRules,
  isSameRule,
  isSet,
  noRules,
  type RuleName,
  type RunRules,
  ruleNames,
  ruleText,
} from '../ledger/run-rules.ts';
import { requireSameDefinitions } from '../ledger/same-definitions.ts';
import { chunkSize } from '../model/row.ts';
import type { Target } from '../model/target.ts';
import type { RedisClient } from '../redis/client.ts';
import { type AppliedPlan, recordedPlan } from './applied-plan.ts';
import type { ListAction, RunOptions } from './list-action.ts';
import type { Session } from './session.ts';

/** How a run is submitted. */
type Submission = {
  /** The run whose ids these are, or ''; the records of both runs name each other. */
  retryOf: string;
  /** The plan that a new run carries out. */
  applied: AppliedPlan | null;
  /** Called with the run as it was written, by this or by another action, before anything in it is changed; throws if the run must not be touched. */
  accept(run: Run): Promise<void>;
  /** Called with the number of ids written. */
  onProgress(ids: number): void;
};

/**
 * Writes the list to Redis as a run and returns it, or returns the unfinished run of this list. Repeating it after a crash completes the run.
 */
export async function submitRun(
  { redis }: Session,
  action: ListAction,
  { target, spool }: { target: Target; spool: Spool },
  { retryOf, applied, accept, onProgress }: Submission,
): Promise<Run> {
  const { config, options, by, command, rehearsalOf } = action;
  refusePassedMoment(options);
  const { who, reason: note } = by;
  const plan = planRun(config, target, spool, {
    note,
    retryOf,
    who,
    detached: options.detach === true,
    command,
    rehearsalOf,
    options,
  });
  const id = await claimList(redis, plan.list, Date.now());
  await action.onRun?.(id);
  const noted = { ...by, by: 'operator' } as const;
  const link = async () => {
    if (retryOf !== '') await noteRetry(redis, retryOf, id, { at: Date.now(), action: 'retry', ...noted });
    await applied?.decide(id);
  };
  const before: BeforeStart = { link, applied: applied && recordedPlan(by, applied) };
  const chunks = readChunks(spool, chunkSizes(config.canary));
  await writeRun(redis, id, plan, chunks, Date.now(), (written) => onProgress(written * chunkSize), before);
  const run = await written(redis, id);
  if (action.newRunOnly) refuseOtherAction(run, plan);
  await accept(run);
  const given = givenRules(action);
  refuseFixedRules(run, given); // another action may have made the run in the meantime
  return changeRules(redis, run, given, { at: Date.now(), ...noted });
}

/** Throws USAGE if the time of --start-at or --stop-at passed before the action was confirmed. A resumed run ignores a time that has passed. */
function refusePassedMoment({ startAt = 0, stopAt = 0 }: RunOptions): void {
  const now = Date.now();
  const passed = [`--start-at ${isoTime(startAt)}`, `--stop-at ${isoTime(stopAt)}`];
  const which = [startAt, stopAt].findIndex((at) => at !== 0 && at <= now);
  if (which === -1) return;
  throw new ExpungeError('USAGE', `${passed[which]} is in the past; nothing was sent`, {
    next: 'give a future time, or none',
  });
}

/** Throws GUARD if another action wrote the run with other rules: only the rules that were confirmed may apply. */
function refuseOtherAction(run: Run, wanted: RunRules): void {
  const others = ruleNames.filter((name) => !isSameRule(name, run, wanted));
  if (others.length === 0) return;
  const names = others.map((name) => findRule(name).flag).join(', ');
  throw new ExpungeError('GUARD', `run ${run.id} of these ids was started with a different ${names}`, {
    next: (toType) => `follow it, or cancel it first: ${toType('cancel', run.id)}`,
  });
}

/**
 * Throws USAGE if a command gives an unfinished run another value of a rule that is fixed for the whole run, and GUARD if its resources are defined in
 * another way here.
 */
export function refuseFixedRules(run: Run | null, given: Partial<RunRules>): void {
  if (run === null) return;
  requireSameDefinitions(run.definitions, `run ${run.id}`);
  const after: RunRules = { ...noRules, ...given };
  const isOther = (name: RuleName) =>
    findRule(name).resume === 'refuse' && given[name] !== undefined && !isSameRule(name, run, after);
  const other = ruleNames.find(isOther);
  if (other === undefined) return;
  const { flag } = findRule(other);
  const before = isSet(run, other) ? `with --${flag} ${ruleText(run, other)}` : `without --${flag}`;
  throw new ExpungeError(
    'USAGE',
    `run ${run.id} of the same list was started ${before}, not with ${ruleText(after, other)}`,
    { next: (toType) => `omit --${flag} to resume it, or cancel it first: ${toType('cancel', run.id)}` },
  );
}

async function written(redis: RedisClient, id: string): Promise<Run> {
  const run = await readRun(redis, id);
  if (run === null) throw new ExpungeError('INTERNAL', `run ${id} vanished from Redis while it was written`);
  return run;
}
