import type { Ledger } from './ledger.ts';
import type { Run } from './run.ts';

/** A run that somebody paused is left paused; one that an interrupt or a guard stopped goes on, since somebody asked for it again. */
export async function startRun(
  ledger: Ledger,
  { id, state, by }: Run,
  { who, reason }: { who: string; reason: string },
): Promise<void> {
  if (state === 'running' || (state === 'paused' && by === 'operator')) return;
  const why = state === 'planned' ? '' : reason; // that of a new run stands with its submission
  await ledger.steer(id, Date.now(), { action: 'start', reason: why, by: 'operator', who });
}
