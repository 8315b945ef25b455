import type { Run } from '../ledger/run.ts';
import { type Stop, stopText } from '../limiter/stop.ts';

/**
 * For a summary: a run that is `running` and stands still all the same has that as its reason: it is stopped, or Redis refuses writes
 * (`refused` says why).
 */
export function withStop(run: Run, stop: Stop | null, refused = ''): Run {
  if (run.state !== 'running' || (stop === null && refused === '')) return run;
  return { ...run, reason: stop === null ? `Redis refuses writes: ${refused}` : stopText(stop) };
}
