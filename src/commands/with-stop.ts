import type { Run } from '../ledger/run.ts';
import { type Stop, stopText } from '../limiter/stop.ts';

/** Why a run may stand still: `refused` says why Redis takes no writes; `isAbandoned`: the command that worked on it has ended. */
type Standstill = { refused?: string; isAbandoned?: boolean };

/** For a summary: a run that is `running` and stands still all the same has that as its reason. */
export function withStop(run: Run, stop: Stop | null, { refused = '', isAbandoned = false }: Standstill = {}): Run {
  if (run.state !== 'running') return run;
  if (isAbandoned) return { ...run, reason: 'its command has ended and nobody works on it' };
  if (stop !== null) return { ...run, reason: stopText(stop) };
  return refused === '' ? run : { ...run, reason: `Redis refuses writes: ${refused}` };
}
