import type { Run } from '../ledger/run.ts';
import { type Stop, stopText } from '../limiter/stop.ts';

/** For a summary: a run that is `running` and stands still all the same has that as its reason. */
export function withStop(run: Run, stop: Stop | null): Run {
  return stop !== null && run.state === 'running' ? { ...run, reason: stopText(stop) } : run;
}
