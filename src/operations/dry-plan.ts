import type { Plan } from '../terminal/plan-text.ts';
import type { ListAction } from './list-action.ts';
import { lookAtRedis } from './look-at-redis.ts';
import { type ListHistory, makeListPlan, noListHistory } from './plan-list.ts';
import { findList, type KnownList, type ListWork } from './start-list.ts';

/** The plan that the same action would show before it asks, as far as Redis can be read, with notes for people. Sends and writes nothing. */
export async function planOfDryRun(action: ListAction, work: ListWork): Promise<{ plan: Plan; notes: string[] }> {
  const looked = await lookAtRedis(action, (session) => findList(session, action, work));
  const plan = 'found' in looked ? planFound(action, work, looked.found) : planAlone(action, work, noListHistory);
  return { plan, notes: notesOf(looked) };
}

/** Why Redis was not asked, or what it refuses, in one line. */
function notesOf(looked: { found: unknown } | { unasked: string } | { refusal: string }): string[] {
  if ('refusal' in looked) return [`warning: the run is refused: ${looked.refusal}`];
  return 'unasked' in looked && looked.unasked !== '' ? [`Redis was not asked: ${looked.unasked}`] : [];
}

/** The plan with what Redis knows. A run of the list that has ended, but is not over yet, sends nothing: it is shown as the previous one. */
function planFound(action: ListAction, work: ListWork, found: KnownList): Plan {
  return found.ended === null ? found.plan : planAlone(action, work, { ...noListHistory, last: found.ended });
}

function planAlone(action: ListAction, { target, list, retries }: ListWork, history: ListHistory): Plan {
  return makeListPlan(action, target, list, { ...history, retries });
}
