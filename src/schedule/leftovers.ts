import { plural } from '../format.ts';
import { omitRetriedRows, type RetriedRow, readRetried } from '../ledger/retries.ts';
import { isFinalized, type Run, readRun, schemaVersion } from '../ledger/run.ts';
import { finalizeTally } from '../ledger/tally.ts';
import { idOutcomes, isFailure, isUncertain, type Outcome, sentOutcomes, sumOutcomes } from '../model/outcome.ts';
import { describeOtherDefinitions, readDefinitions } from '../model/resource.ts';
import type { RedisClient } from '../redis/client.ts';
import type { CarriedOver } from './carried-over.ts';
import type { Schedule } from './schedule.ts';
import { readHistory, type ScheduleDeps } from './schedule-store.ts';

/** The ids that earlier occurrences left to the next one, their maximum number, and a note on ids that are left out; '' = none. */
export type Leftovers = { carriedOver: CarriedOver | null; retried: RetriedIds | null; ids: number; note: string };

/** The run of the last occurrence, and its ids that are sent again. */
type RetriedIds = Left & { ids: number; unknown: number };

type Left = { run: Run; choice: Choice };

/** `cutFrom`: the first file from which ids are also chosen that did not fail. `retries`: runs of operators, which keep their ids. */
type Choice = { only: Outcome[]; retryFailed: boolean; cutFrom: number; retries: Run[] };

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
export async function* readLeft(redis: RedisClient, { run, choice }: Left): AsyncGenerator<RetriedRow[]> {
  const { only, retryFailed, cutFrom, retries } = choice;
  const isLeft = ({ outcome, file }: RetriedRow) => (retryFailed && isFailure(outcome)) || file >= cutFrom;
  for await (const page of omitRetriedRows(redis, retries, readRetried(redis, run, only))) yield page.filter(isLeft);
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
  const [chosen, withdrawn] = [selectFailed(schedule), selectCancelled(run, schedule)];
  const hasAny = ({ only }: Pick<Choice, 'only'>) => sumOutcomes(run.counts, (outcome) => only.includes(outcome)) > 0;
  if (!hasAny(chosen) && !hasAny(withdrawn)) return none;
  const others = describeOtherDefinitions(readDefinitions(run.definitions));
  if (others.length > 0)
    return { retried: null, note: `ids that run ${run.id} left are not retried: ${others.join(', ')}` };
  const found = await Promise.all(run.retriedBy.map((id) => readRun(redis, id)));
  const retries = found.filter((retry) => retry?.schema === schemaVersion) as Run[];
  const by = `run ${run.retriedBy.join(', ')} has retried ids of run ${run.id}`;
  if (retries.length < found.length)
    return { retried: null, note: `${by}, and Redis does not record which: none is retried here` };
  const left = { run, choice: { ...chosen, retries } };
  const sums = await sumLeft(redis, left, stop);
  const cancelled = await sumLeft(redis, { run, choice: { ...withdrawn, retries } }, stop);
  const notes = [
    retries.length > 0 && `${by}: they are not retried here`,
    cancelled.ids > 0 &&
      `run ${run.id} was cancelled before it had retried ${plural(cancelled.ids, 'ids')}: not retried here either`,
  ];
  return { retried: sums.ids > 0 ? { ...left, ...sums } : null, note: notes.filter(Boolean).join('; ') };
}

async function sumLeft(redis: RedisClient, left: Left, stop: AbortSignal): Promise<{ ids: number; unknown: number }> {
  const sums = { ids: 0, unknown: 0 };
  if (left.choice.only.length === 0) return sums;
  for await (const page of readLeft(redis, left)) {
    stop.throwIfAborted();
    sums.ids += page.length;
    sums.unknown += page.filter(({ outcome }) => isUncertain(outcome)).length;
  }
  return sums;
}

const whole = Number.POSITIVE_INFINITY; // no file is cut

/** Chooses the ids of an ended run that the next occurrence sends again. If an operator cancelled the run, its open ids are not to be deleted. */
function selectFailed({ retryFailed }: Schedule): Omit<Choice, 'retries'> {
  return { only: idOutcomes.filter(isFailure), retryFailed, cutFrom: whole };
}

/** The ids that the run was to retry and that an operator cancelled before they were sent. */
function selectCancelled({ id, state }: Run, { retryFailed, retriedFrom }: Schedule): Omit<Choice, 'retries'> {
  const isWithdrawn = retryFailed && state === 'cancelled' && retriedFrom?.run === id;
  if (!isWithdrawn) return { only: [], retryFailed: false, cutFrom: whole };
  return { only: idOutcomes.filter((outcome) => !isSent(outcome)), retryFailed: false, cutFrom: retriedFrom.file };
}

function isSent(outcome: Outcome): boolean {
  return sentOutcomes.some((sent) => sent === outcome);
}
