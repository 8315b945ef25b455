import { readTarget } from '../config/check-target.ts';
import { ExpungeError } from '../errors.ts';
import { isoTime } from '../format.ts';
import type { List } from '../input/with-list.ts';
import { findRunOfList } from '../ledger/create-run.ts';
import { findOverlappingRuns } from '../ledger/list-runs.ts';
import { isFinalized } from '../ledger/run.ts';
import { readAbsentAnswers } from '../ledger/semantics.ts';
import { parseApprover } from '../model/approver.ts';
import { isSamePerson } from '../model/person.ts';
import { hashList, type Target } from '../model/target.ts';
import type { RedisClient } from '../redis/client.ts';
import type { Plan } from '../terminal/plan-text.ts';
import type { By } from './action.ts';
import type { ListAction } from './list-action.ts';
import { checkList, type ListHistory, makeListPlan, noListHistory } from './plan-list.ts';
import { readBeforeRun } from './read-bounds.ts';
import { type PlanOrigin, type SealedPlan, sealPlan } from './sealed-plan.ts';

/** A sealed plan, and how it is shown. */
export type MadePlan = { plan: SealedPlan; shown: Plan };

/**
 * Seals a list. Throws the USAGE and GUARD errors that would refuse a run of it. `unnamed`: names of lists that were given none; they do not connect
 * a list with other lists of that name.
 */
export async function makePlan(
  redis: RedisClient,
  action: ListAction,
  list: List,
  { origin, unnamed = [] }: { origin: PlanOrigin; unnamed?: readonly string[] },
): Promise<MadePlan> {
  const target = readTarget(action.config, action.env);
  checkList(action, list.spool);
  const files = list.spool.files.filter((name) => !unnamed.includes(name));
  const shown = makeListPlan(action, target, list, await readHistory(redis, { target, list, files }));
  return { plan: sealPlan(origin, action.config, target, list), shown };
}

/** What Redis knows about a list. Its unfinished run is not resumed: applying the plan names that run instead. */
async function readHistory(
  redis: RedisClient,
  { target, list, files }: { target: Target; list: List; files: readonly string[] },
): Promise<ListHistory> {
  const last = await findRunOfList(redis, hashList(target, list.spool.sha256, ''));
  const isUnfinished = last !== null && !isFinalized(last.state);
  const [overlapping, before, proof] = await Promise.all([
    findOverlappingRuns(redis, target, { files: isUnfinished ? [] : files }),
    readBeforeRun(redis, target.fp, null),
    readAbsentAnswers(redis, target.fp),
  ]);
  return { ...noListHistory, ...before, proof, last, overlapping };
}

/** The origin of a plan made now. `approver`: who has to apply it, as --approve-by takes it; throws USAGE if that is the planner. */
export function newOrigin({ who, reason }: By, approver: string | undefined): PlanOrigin {
  if (approver !== undefined && isSamePerson(approver, who))
    throw new ExpungeError('USAGE', `--approve-by ${approver}: expected someone other than the planner, ${who}`, {
      next: 'name another person, as EXPUNGE_USER or their login names them',
    });
  const approve_by = approver === undefined ? null : parseApprover(approver);
  return { planned_at: isoTime(Date.now()), planned_by: who, approve_by, reason };
}
