import { AnswerTally } from '../../src/limiter/outage.ts';
import { storedSaying } from '../../src/limiter/stop.ts';
import type { TargetCall } from '../../src/limiter/target-call.ts';

/** The call of a process that wants permits, has used none and has nothing to report, but for what a test wishes. */
export function quietCall(wish: Partial<TargetCall> = {}): TargetCall {
  return {
    process: 'p',
    wants: true,
    till: '0',
    unused: 0,
    unusedSince: 0,
    granted: 0,
    heardAt: 0,
    limitId: '',
    epoch: '0',
    connections: 64,
    hold: { ms: 0, why: '' },
    alarm: null,
    claim: null,
    tally: new AnswerTally(),
    starved: false,
    busy: false,
    restMs: 1_000,
    here: storedSaying({ stop: null, token: null }),
    ...wish,
  };
}
