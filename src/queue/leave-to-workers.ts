import type { Ledger } from '../ledger/ledger.ts';
import type { Run } from '../ledger/run.ts';
import { startRun } from '../ledger/start-run.ts';
import { keys } from '../redis/keys.ts';
import type { Feeder } from './feeder.ts';

/** Leaves a planned run to the workers of its target, and starts it. Repeating it is harmless. */
export async function leaveToWorkers(ledger: Ledger, feeder: Feeder, run: Run, who: string): Promise<void> {
  await ledger.redis.sadd(keys.targetRuns(run.fp), run.id);
  await startRun(ledger, run, who);
  await feeder.tend(run.id);
}
