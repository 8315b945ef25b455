import { readTarget } from '../config/check-target.ts';
import { ExpungeError } from '../errors.ts';
import { isoTime } from '../format.ts';
import { openInputs } from '../input/open-inputs.ts';
import type { List } from '../input/with-list.ts';
import { parseApprover } from '../model/approver.ts';
import { isSamePerson } from '../model/person.ts';
import type { Plan } from '../terminal/plan-text.ts';
import type { By } from './action.ts';
import { requireEndInTime } from './forecast-list.ts';
import type { ListAction } from './list-action.ts';
import { readPlanInPlace, writePlanFile } from './plan-file.ts';
import { checkList, type ListHistory, makeListPlan, noListHistory } from './plan-list.ts';
import { type PlanOrigin, type SealedInput, type SealedPlan, sealInputs, sealPlan } from './sealed-plan.ts';

/** An action to make a plan. */
type PlanAction = {
  paths: string[]; // paths of its list
  read: <T>(body: (list: List) => Promise<T>) => Promise<T>; // throws what `withList` throws
  output: string; // path of its file
  origin: PlanOrigin;
  /** Reads what Redis knows about the list, if it can be reached. */
  historyOf?: (list: List) => Promise<ListHistory>;
};

/** A sealed plan, its hash, and how it is shown. */
export type MadePlan = {
  plan: SealedPlan;
  sha256: string;
  shown: Plan;
  replaced: string | null; // the hash of the plan that the file held before; null = none
};

/** Seals the list of an action in a file. Throws the USAGE and GUARD errors that would refuse a run of it. */
export async function makePlan(
  action: ListAction,
  { paths, read, output, origin, historyOf = async () => noListHistory }: PlanAction,
): Promise<MadePlan> {
  const target = readTarget(action.config, action.env);
  const replaced = await readPlanInPlace(output); // reports a wrong file before the list is read
  const input = await sealFiles(paths);
  return read(async (list) => {
    checkList(action, list.spool);
    const shown = makeListPlan(action, target, list, await historyOf(list));
    requireEndInTime(shown.work, action.options, Date.now());
    const plan = sealPlan(origin, action.config, target, input, list);
    const sha256 = await writePlanFile(output, plan);
    return { plan, sha256, shown, replaced };
  });
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

/** The hashes of the files of a plan. Throws USAGE for a file that cannot be read a second time. */
export async function sealFiles(paths: string[]): Promise<SealedInput[]> {
  const files = await openInputs(paths);
  const pipe = files.find(({ isPipe }) => isPipe);
  if (pipe === undefined) return sealInputs(files);
  throw new ExpungeError('USAGE', `${pipe.name}: expected a file, because apply reads it again; got a pipe`, {
    next: 'write the ids to a file first',
  });
}
