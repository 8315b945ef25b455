import { changeRate } from './change-rate.ts';
import type { RunOperations } from './operations.ts';
import { removeRun } from './remove-run.ts';
import { findRun, type Session } from './session.ts';
import { cancelRun, findHaltedRuns, pauseRun, resumeRun } from './steer-run.ts';

/** Actions for runs in the Redis of this session. */
export function localRuns(session: Session): RunOperations {
  return {
    find: (text) => findRun(session, text),
    findHalted: (target, halt) => findHaltedRuns(session, target, halt),
    pause: (action) => pauseRun(session, action),
    resume: (action) => resumeRun(session, action),
    cancel: (action, onWait) => cancelRun(session, action, onWait),
    changeRate: (action) => changeRate(session, action),
    remove: (action) => removeRun(session, action),
  };
}
