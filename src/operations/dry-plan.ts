import type { ExpungeError } from '../errors.ts';
import type { Plan } from '../terminal/plan-text.ts';
import type { ListAction } from './list-action.ts';
import { lookAtRedis } from './look-at-redis.ts';
import { type ListHistory, makeListPlan, noListHistory } from './plan-list.ts';
import { explainStopBeforeStart, findList, type KnownList, type ListWork } from './start-list.ts';

/** A plan for people; with why the same action would be refused, or null. */
export type DryPlan = { plan: Plan; notes: string[]; refusal: ExpungeError | null };

/** The plan that the same action would show before it asks, as far as Redis can be read. Sends and writes nothing. */
export async function planOfDryRun(action: ListAction, work: ListWork): Promise<DryPlan> {
  const looked = await lookAtRedis(action, (session) => findList(session, action, work));
  const plan = 'found' in looked ? planFound(action, work, looked.found) : planAlone(action, work, noListHistory);
  const notes = 'unasked' in looked && looked.unasked !== '' ? [`Redis was not asked: ${looked.unasked}`] : [];
  if ('found' in looked) return { plan, notes, refusal: null };
  return { plan, notes, refusal: 'refusal' in looked ? looked.refusal : explainStopBeforeStart(plan) };
}

/** The plan with what Redis knows. A run of the list that has ended, but is not over yet, sends nothing: it is shown as the previous one. */
function planFound(action: ListAction, work: ListWork, found: KnownList): Plan {
  return found.ended === null ? found.plan : planAlone(action, work, { ...noListHistory, last: found.ended });
}

function planAlone(action: ListAction, { target, list, retries }: ListWork, history: ListHistory): Plan {
  return makeListPlan(action, target, list, { ...history, retries });
}
