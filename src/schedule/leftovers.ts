import { omitRetriedRows, type RetriedRow, readRetried } from '../ledger/retries.ts';
import { isFinalized, type Run, readRun, schemaVersion } from '../ledger/run.ts';
import { finalizeTally } from '../ledger/tally.ts';
import { isFailure, sentOutcomes, sumOutcomes } from '../model/outcome.ts';
import { describeOtherDefinitions, readDefinitions } from '../model/resource.ts';
import type { RedisClient } from '../redis/client.ts';
import type { CarriedOver } from './carried-over.ts';
import type { Schedule } from './schedule.ts';
import { readHistory, type ScheduleDeps } from './schedule-store.ts';

/** The ids that earlier occurrences left to the next one, their maximum number, and a note on ids that are left out; '' = none. */
export type Leftovers = { carriedOver: CarriedOver | null; retried: RetriedIds | null; ids: number; note: string };

/** The run of the last occurrence, and its ids that are sent again. */
type RetriedIds = Left & { ids: number; mayBeGone: number };

/** `retries`: runs of operators, which keep their ids. */
type Left = { run: Run; retries: Run[] };

/** Finds the ids that earlier occurrences of a schedule left. Its last run has ended. Throws the reason of `stop`. */
export async function findLeftovers(
  { ledger: { redis }, target }: Pick<ScheduleDeps, 'ledger' | 'target'>,
  schedule: Schedule,
  stop: AbortSignal,
): Promise<Leftovers> {
  const { carriedOver } = schedule;
  const { retried, note } = await findRetried(redis, target.fp, schedule, stop);
  return { carriedOver, retried, ids: (carriedOver?.ids ?? 0) + (retried?.ids ?? 0), note };
}

/** The rows of the last run that are sent again, in input order. */
export function readLeft(redis: RedisClient, { run, retries }: Left): AsyncGenerator<RetriedRow[]> {
  return omitRetriedRows(redis, retries, readRetried(redis, run, sentOutcomes.filter(isFailure)));
}

const none = { retried: null, note: '' };

async function findRetried(
  redis: RedisClient,
  fp: string,
  schedule: Schedule,
  stop: AbortSignal,
): Promise<Pick<Leftovers, 'retried' | 'note'>> {
  const { name, lastRun, lastSha256, retryFailed } = schedule;
  // Without a hash there was no run since the schedule was added.
  if (lastRun === '' || lastSha256 === '' || !retryFailed) return none;
  const found = await readRun(redis, lastRun);
  if (found === null || found.schema !== schemaVersion) {
    const ended = (await readHistory(redis, fp, name)).find(({ run }) => run === lastRun)?.ended;
    const note = `Redis no longer has run ${lastRun}: ids that it left are not retried`;
    return ended?.left === 0 ? none : { retried: null, note };
  }
  if (!isFinalized(found.state)) return none;
  return chooseRetried(redis, await finalizeTally(redis, found), schedule, stop);
}

async function chooseRetried(
  redis: RedisClient,
  run: Run,
  schedule: Schedule,
  stop: AbortSignal,
): Promise<Pick<Leftovers, 'retried' | 'note'>> {
  // The list comes before the retried ids, so some of these are probably among the ids that were not sent.
  const isWithdrawn = schedule.retriedFrom?.run === run.id && run.counts.not_attempted > 0;
  if (sumOutcomes(run.counts, isFailure) === 0 && !isWithdrawn) return none;
  const others = describeOtherDefinitions(readDefinitions(run.definitions));
  if (others.length > 0)
    return { retried: null, note: `ids that run ${run.id} left are not retried: ${others.join(', ')}` };
  const found = await Promise.all(run.retriedBy.map((id) => readRun(redis, id)));
  const retries = found.filter((retry) => retry?.schema === schemaVersion) as Run[];
  const by = `run ${run.retriedBy.join(', ')} has retried ids of run ${run.id}`;
  if (retries.length < found.length)
    return { retried: null, note: `${by}, and Redis does not record which: none is retried here` };
  const left = { run, retries };
  const sums = await sumLeft(redis, left, stop);
  const notes = [
    retries.length > 0 && `${by}: they are not retried here`,
    isWithdrawn && `run ${run.id} was cancelled: ids that it had not retried are not retried here either`,
  ];
  return { retried: sums.ids > 0 ? { ...left, ...sums } : null, note: notes.filter(Boolean).join('; ') };
}

async function sumLeft(redis: RedisClient, left: Left, stop: AbortSignal): Promise<{ ids: number; mayBeGone: number }> {
  const sums = { ids: 0, mayBeGone: 0 };
  for await (const page of readLeft(redis, left)) {
    stop.throwIfAborted();
    sums.ids += page.length;
    sums.mayBeGone += page.filter(({ mayBeGone }) => mayBeGone).length;
  }
  return sums;
}
