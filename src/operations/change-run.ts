import { ExpungeError } from '../errors.ts';
import { isFinalized } from '../ledger/run.ts';
import { type Rate, rateSetting } from '../model/rate.ts';
import type { RunAction } from './action.ts';
import { findRun, type Session } from './session.ts';

/** The rate and burst of a run. A null rate means no rate of its own, a null burst means the default. */
type Pace = { rate: Rate | null; burst: number | null };

/** The same, as a flag takes it. */
export type PaceFacts = { rate: string | null; burst: number | null };

/** A run after a change of its rate. */
export type PaceChange = PaceFacts & { run: string; state: string; before: PaceFacts };

/** An action to change the pace of a run. A burst that is not given stays as it is. */
export type PaceAction = RunAction & { pace: Pick<Pace, 'rate'> & Partial<Pace> };

export async function changePace(session: Session, { run: text, by, pace }: PaceAction): Promise<PaceChange> {
  const { id } = await findRun(session, text);
  const change = { ...pace, ...by, by: 'operator' as const };
  const { state, ...before } = await session.ledger.changeRate(id, Date.now(), change);
  if (state === 'missing')
    throw new ExpungeError('USAGE', `run ${id} is no longer in Redis`, {
      next: (toType) => `${toType('runs')} lists them`,
    });
  if (isFinalized(state)) throw ended(id, `${state}: there is no rate to change`);
  return { run: id, state, ...paceFacts({ ...before, ...pace }), before: paceFacts(before) };
}

function paceFacts({ rate, burst }: Pace): PaceFacts {
  return { rate: rate && rateSetting(rate), burst };
}

function ended(run: string, words: string): ExpungeError {
  return new ExpungeError('USAGE', `run ${run} is ${words}`, {
    next: (toType) => `see its status: ${toType('status', run)}`,
  });
}
