import { isDeepStrictEqual } from 'node:util';
import { ExpungeError } from '../errors.ts';
import { count, isoTime } from '../format.ts';
import { chunkSizes, readChunks } from '../input/chunk-ids.ts';
import type { Spool } from '../input/spool.ts';
import { claimList, planRun, type RunPlan, writeRun } from '../ledger/create-run.ts';
import type { Ledger } from '../ledger/ledger.ts';
import { changeMaxDeletes } from '../ledger/max-deletes.ts';
import { noteRetry } from '../ledger/retries.ts';
import { type Priority, type Run, readRun } from '../ledger/run.ts';
import { chunkSize } from '../model/row.ts';
import { quoteForShell } from '../model/shell-word.ts';
import type { Target } from '../model/target.ts';
import { always } from '../model/time-window.ts';
import type { RedisClient } from '../redis/client.ts';
import { keys } from '../redis/keys.ts';
import { startProgress } from '../terminal/live-panel.ts';
import { commandLine } from '../terminal/style.ts';
import { type Invocation, reasonOf } from './command.ts';
import { progressOn, type Session, whoAmI } from './session.ts';

/** Told of a run before it is written, so that an order over HTTP that breaks off is not given for a second one. */
type OnRun = (run: string) => Promise<void>;

/**
 * Writes the list to Redis as a run and returns it, or returns the unfinished run of this list. Repeating it after a crash completes the run.
 * `retryOf`: the run whose ids these are, or ''; the record of each names the other. `accept` is called with the run as it was written, by
 * this or by another order, before anything of it is changed: it throws where the run is not to be touched.
 */
export async function submitRun(
  invocation: Invocation,
  { redis, ledger }: Session,
  target: Target,
  spool: Spool,
  { retryOf, accept }: { retryOf: string; accept(run: Run): Promise<void> },
): Promise<Run> {
  const { argv, config, options, sources } = invocation;
  refusePassedMoment(options);
  const { who, reason: note } = orderOf(invocation);
  const { detach, priority = 'normal', onRun } = options as { detach?: boolean; priority?: Priority; onRun?: OnRun };
  const isTyped = argv.length > 0; // an order over HTTP has no line to type
  const command = isTyped ? `cd ${quoteForShell(process.cwd())} && ${commandLine(argv)}` : '';
  const origin = { note, retryOf, who, detached: detach === true, priority, command };
  const plan = planRun(config, target, spool, origin);
  const id = await claimList(redis, plan.list, Date.now());
  await onRun?.(id);
  let chunks = 0;
  const progress = startProgress(
    progressOn(invocation),
    invocation.env,
    () => `Writing the list to Redis: ${count(chunks * chunkSize)} ids`,
  );
  try {
    await writeRun(redis, id, plan, readChunks(spool, chunkSizes(config.canary)), Date.now(), (written) => {
      chunks = written;
    });
  } finally {
    progress.stop();
  }
  const asWritten = await written(redis, id);
  if (options.newRunOnly === true) refuseOtherOrder(asWritten, plan);
  await accept(asWritten);
  const retry = { at: Date.now(), action: 'retry', ...orderOf(invocation) };
  if (retryOf !== '') await noteRetry(redis, retryOf, id, retry);
  if (config.maxDeletes !== undefined) {
    const by = { at: Date.now(), action: 'max-deletes', ...orderOf(invocation) };
    await changeMaxDeletes(redis, asWritten, config.maxDeletes, by);
  }
  if (config.expectAbsent) await redis.hset(keys.run(id), 'expectAbsent', 1);
  if (config.maxFailures !== '') await redis.hset(keys.run(id), 'maxFailures', config.maxFailures);
  if (config.window !== '') await changeWindow(redis, id, config.window);
  await setTimeLimits(redis, id, options);
  if (sources.keep !== 'default') await redis.hset(keys.run(id), 'keepMs', config.keep);
  const run = await written(redis, id);
  const isOther = [await changeRate(invocation, ledger, run), await changePriority(invocation, ledger, run)];
  return isOther.includes(true) ? written(redis, id) : run;
}

/** Throws USAGE where the moment of --stop-at came before the order was confirmed: a resumed run goes on past one that has come. */
function refusePassedMoment({ stopAt }: Invocation['options']): void {
  if (stopAt === undefined || Number(stopAt) > Date.now()) return;
  throw new ExpungeError('USAGE', `the moment of --stop-at, ${isoTime(Number(stopAt))}, is over; nothing was sent`, {
    next: 'give one that is to come, or none',
  });
}

const ofOrder = [
  ...(['rate', 'burst', 'window', 'keepMs', 'priority', 'canaryOf'] as const),
  ...(['maxDeletes', 'maxFailures', 'onStatus', 'expectAbsent'] as const),
];

/** Throws GUARD where another order wrote the run, with other rules: the one that was confirmed holds, or none. */
function refuseOtherOrder(run: Run, plan: RunPlan): void {
  const others = ofOrder.filter((name) => !isDeepStrictEqual(run[name], plan[name]));
  if (others.length === 0) return;
  throw new ExpungeError('GUARD', `run ${run.id} of these ids was begun with another ${others.join(', ')}`, {
    next: `see what becomes of it, or cancel it first: expunge cancel ${run.id}`,
  });
}

/** Says when a guard is to pause the run. Without an option that is as before. Repeating it changes nothing. */
async function setTimeLimits(
  redis: RedisClient,
  id: string,
  { stopAt, maxDuration }: Invocation['options'],
): Promise<void> {
  if (stopAt !== undefined) await redis.hset(keys.run(id), 'stopAt', Number(stopAt));
  if (maxDuration !== undefined) await redis.hset(keys.run(id), 'maxActiveMs', Number(maxDuration));
}

/** Gives a resumed run the window of this command. Repeating it changes nothing. */
async function changeWindow(redis: RedisClient, id: string, window: string): Promise<void> {
  await redis.hset(keys.run(id), { window: window === always ? '' : window, closedUntil: 0 });
}

async function written(redis: RedisClient, id: string): Promise<Run> {
  const run = await readRun(redis, id);
  if (run === null) throw new ExpungeError('INTERNAL', `run ${id} vanished from Redis while it was written`);
  return run;
}

/** Gives a resumed run the rate of this command, unless it has ended meanwhile. Returns whether that differs from the one before. */
async function changeRate(invocation: Invocation, ledger: Ledger, run: Run): Promise<boolean> {
  const { config } = invocation;
  const { rate = run.rate, burst = run.burst } = config;
  if (isDeepStrictEqual([rate, burst], [run.rate, run.burst])) return false;
  await ledger.changeRate(run.id, Date.now(), { rate, burst, ...orderOf(invocation) });
  return true;
}

/** Gives a resumed run the priority of this command, in the same way. */
async function changePriority(invocation: Invocation, ledger: Ledger, run: Run): Promise<boolean> {
  const { priority = run.priority } = invocation.options as { priority?: Priority };
  if (priority === run.priority) return false;
  await ledger.changePriority(run.id, Date.now(), { priority, ...orderOf(invocation) });
  return true;
}

function orderOf({ env, options }: Invocation) {
  return { by: 'operator', who: whoAmI(env), reason: reasonOf(options) } as const;
}
