import { ExpungeError } from '../errors.ts';
import { isFinalized } from '../ledger/run.ts';
import { type Rate, rateSetting } from '../model/rate.ts';
import type { RunAction } from './action.ts';
import { findRun, type Session } from './session.ts';

/** A run after a change of its rate, which is in the form of its flag; null = no rate of its own. */
export type RateChange = { run: string; state: string; rate: string | null; before: { rate: string | null } };

export type RateAction = RunAction & { rate: Rate | null };

/** Changes the rate of a run. Throws USAGE for a run that has ended. Repeating it changes nothing. */
export async function changeRate(session: Session, { run: text, by, rate }: RateAction): Promise<RateChange> {
  const { id } = await findRun(session, text);
  const { state, rate: before } = await session.ledger.changeRate(id, Date.now(), { ...by, rate, by: 'operator' });
  if (state === 'missing')
    throw new ExpungeError('USAGE', `run ${id} is no longer in Redis`, {
      next: (toType) => `${toType('runs')} lists them`,
    });
  if (isFinalized(state))
    throw new ExpungeError('USAGE', `run ${id} is ${state}: there is no rate to change`, {
      next: (toType) => `see its status: ${toType('status', id)}`,
    });
  return { run: id, state, rate: rate && rateSetting(rate), before: { rate: before && rateSetting(before) } };
}
