import { plural } from '../format.ts';
import { isSealed, type Run, readRun, schemaVersion } from '../ledger/run.ts';
import { sealTally } from '../ledger/tally.ts';
import { idOutcomes, isFailure, isUncertain, type Outcome, sentOutcomes, sumOutcomes } from '../model/outcome.ts';
import type { RedisClient } from '../redis/client.ts';
import type { Carried } from './carried.ts';
import type { Schedule } from './schedule.ts';
import { readHistory, type ScheduleDeps } from './schedule-store.ts';

/** What earlier slots left to the next one, how many ids at most, and what is left out; '' = nothing. */
export type Leftovers = { carried: Carried | null; retried: RetriedIds | null; ids: number; note: string };

/** The run of the last slot, and which of its ids are sent again. */
type RetriedIds = { run: Run; only: Outcome[]; ids: number; unknown: number };

/** Finds what earlier slots of a schedule left. Its last run has ended. */
export async function findLeftovers(
  { ledger: { redis }, target }: Pick<ScheduleDeps, 'ledger' | 'target'>,
  schedule: Schedule,
): Promise<Leftovers> {
  const { carried } = schedule;
  const { retried, note } = await findRetried(redis, target.fp, schedule);
  return { carried, retried, ids: (carried?.ids ?? 0) + (retried?.ids ?? 0), note };
}

const none = { retried: null, note: '' };

async function findRetried(
  redis: RedisClient,
  fp: string,
  schedule: Schedule,
): Promise<Pick<Leftovers, 'retried' | 'note'>> {
  const { name, lastRun, lastSha256, retryFailed, atMost } = schedule;
  // Without a hash there was no run since the schedule was added.
  if (lastRun === '' || lastSha256 === '' || !(retryFailed || atMost > 0)) return none;
  const found = await readRun(redis, lastRun);
  if (found === null || found.schema !== schemaVersion) {
    const ended = (await readHistory(redis, fp, name)).find(({ run }) => run === lastRun)?.ended;
    const note = `Redis no longer has run ${lastRun}: ids that it left are not retried`;
    // With --at-most alone only what was never sent goes on to the next slot, and a run that completed has left nothing of that.
    const hasLeft = ended?.left !== 0 && (retryFailed || ended?.state !== 'completed');
    return hasLeft ? { retried: null, note } : none;
  }
  if (!isSealed(found.state)) return none;
  return chooseRetried(await sealTally(redis, found), schedule);
}

/** Which ids of an ended run the next slot sends again. An operator may have retried them meanwhile: then none. */
function chooseRetried(
  run: Run,
  { retryFailed, atMost }: Pick<Schedule, 'retryFailed' | 'atMost'>,
): Pick<Leftovers, 'retried' | 'note'> {
  // What an operator cancels is not to be deleted; what the next slot cancels is carried.
  const isCut = atMost > 0 && run.state === 'cancelled' && run.by === 'guard';
  // In a run in doubt no open id reads as never sent.
  const isOpenAtCut = (outcome: Outcome) =>
    !isSent(outcome) || (run.doubtSince > 0 && isFailure(outcome) && isUncertain(outcome));
  const only = idOutcomes.filter((outcome) => (retryFailed && isFailure(outcome)) || (isCut && isOpenAtCut(outcome)));
  const sum = (isCounted: (outcome: Outcome) => boolean) =>
    sumOutcomes(run.counts, (outcome) => only.includes(outcome) && isCounted(outcome));
  const ids = sum(() => true);
  if (ids === 0) return none;
  const [by] = run.retriedBy.slice(-1);
  if (by !== undefined)
    return {
      retried: null,
      note: `run ${by} has retried ids of run ${run.id}, which left ${plural(ids, 'ids')}: none is retried here`,
    };
  return { retried: { run, only, ids, unknown: sum(isUncertain) }, note: '' };
}

function isSent(outcome: Outcome): boolean {
  return sentOutcomes.some((sent) => sent === outcome);
}
