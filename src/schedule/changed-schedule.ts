import { ExpungeError } from '../errors.ts';
import { stateText } from '../format.ts';
import type { Schedule } from './schedule.ts';

/** Refuses an action whose schedule has changed since it was shown. `undone`: `resumed`, `started`. Pure. */
export function scheduleChanged(now: Schedule, undone: string): ExpungeError {
  const words = `schedule ${now.name} has changed since it was shown: it is ${textOf(now)}; nothing was ${undone}`;
  return new ExpungeError('GUARD', words, {
    next: (toType) =>
      `look at its definition and audit trail, then repeat the action: ${toType('schedule list', '--json')}`,
  });
}

function textOf({ state, who, pausedBy, reason }: Schedule): string {
  return stateText(state, pausedBy === '' ? who : `its guard "${pausedBy}"`, reason);
}
