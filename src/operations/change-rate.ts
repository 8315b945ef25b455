import { ExpungeError } from '../errors.ts';
import { changeRules } from '../ledger/change-rules.ts';
import { isFinalized } from '../ledger/run.ts';
import { type Rate, rateSetting } from '../model/rate.ts';
import type { RunAction } from './action.ts';
import { findRun, type Session } from './session.ts';

/** A run after a change of its rate, which is in the form of its flag; null = no rate of its own. */
export type RateChange = { run: string; state: string; rate: string | null; before: { rate: string | null } };

export type RateAction = RunAction & { rate: Rate | null };

/** Changes the rate of a run. Throws USAGE for a run that has ended. Repeating it changes nothing. */
export async function changeRate(session: Session, { run: text, by, rate }: RateAction): Promise<RateChange> {
  const seen = await findRun(session, text);
  const run = await changeRules(session.redis, seen, { rate }, { at: Date.now(), by: 'operator', ...by });
  if (isFinalized(run.state))
    throw new ExpungeError('USAGE', `run ${run.id} is ${run.state}: there is no rate to change`, {
      next: (toType) => `see its status: ${toType('status', run.id)}`,
    });
  return { run: run.id, state: run.state, rate: settingOf(run), before: { rate: settingOf(seen) } };
}

function settingOf({ rate }: { rate: Rate | null }): string | null {
  return rate && rateSetting(rate);
}
