import { ExpungeError } from '../errors.ts';
import { isFinalized, type Run } from '../ledger/run.ts';
import { inheritedSettings } from '../ledger/run-rules.ts';
import { requireSameDefinitions } from '../ledger/same-definitions.ts';
import type { OutcomeCounts } from '../model/outcome.ts';
import type { ToType } from '../model/to-type.ts';
import type { ListAction } from './list-action.ts';

/** A run whose ids another run retries, how many of those ids had each outcome, and how many it may have deleted. */
export type Retries = { run: Run; chosen: OutcomeCounts; mayBeGone: number };

type Live = Pick<Run, 'id' | 'state' | 'command' | 'detached'>;

/** Throws USAGE for a run that has not ended, and says how it can end. */
export function requireEndedForRetry({ id, state, command, detached }: Live): void {
  if (isFinalized(state)) return;
  throw new ExpungeError('USAGE', `run ${id} is ${state}; only a run that has ended can be retried`, {
    next: (toType) => adviceToEnd({ id, state, command, detached }, toType),
  });
}

function adviceToEnd({ id, state, command, detached }: Live, toType: ToType): string {
  const cancel = `end it: ${toType('cancel', id)}`;
  const same = command === '' ? toType('status', id) : command;
  const again = detached ? toType('resume', id) : `${toType('resume', id, '--detach')}, or the same command: ${same}`;
  const advice: Partial<Record<Run['state'], string>> = {
    preparing: `complete it with its own command: ${same}`,
    planned: `start it: ${again}; or ${cancel}`,
    running: `wait for its end: ${toType('status', id, '--watch')}; or ${cancel}`,
    cancelling: `wait for its end: ${toType('cancel', id, '--yes')}`,
  };
  return advice[state] ?? `let it continue: ${again}; or ${cancel}`;
}

/**
 * The action with the settings of the retried run, unless the action sets them itself. If the run may have deleted some of its ids, they are expected
 * to be gone. Throws USAGE for a rate that this version cannot read: without it nothing would bound the retry. Throws GUARD for resources that are
 * defined in another way here.
 */
export function inherit(action: ListAction, { run, mayBeGone }: Retries): ListAction {
  const { config } = action;
  requireSameDefinitions(run.definitions, `run ${run.id}`);
  if (config.rate === undefined && run.unreadRate !== '')
    throw new ExpungeError('USAGE', `the rate of run ${run.id} is in a form that this version of expunge can't read`, {
      next: 'give one: --rate 200/s',
    });
  const inherited = inheritedSettings(run, action);
  const expectAbsent = config.expectAbsent || run.expectAbsent || mayBeGone > 0;
  return {
    ...action,
    config: {
      ...config,
      ...inherited,
      grace: Math.max(config.grace, inherited.grace ?? 0),
      expectAbsent,
    },
  };
}
