import { changePace, changePriority } from './change-run.ts';
import type { RunOperations } from './operations.ts';
import { removeRun } from './remove-run.ts';
import { findRun, type Session } from './session.ts';
import { cancelRun, findHaltedRuns, pauseRun, resumeRun } from './steer-run.ts';

/** Orders for runs in the Redis of this session. */
export function localRuns(session: Session): RunOperations {
  return {
    find: (text) => findRun(session, text),
    findHalted: (target, halt) => findHaltedRuns(session, target, halt),
    pause: (order) => pauseRun(session, order),
    resume: (order) => resumeRun(session, order),
    cancel: (order, onWait) => cancelRun(session, order, onWait),
    changePace: (order) => changePace(session, order),
    changePriority: (order) => changePriority(session, order),
    remove: (order) => removeRun(session, order),
  };
}
