import type { Ledger } from './ledger.ts';
import type { Run } from './run.ts';

/** A run that somebody paused is left paused; one that an interrupt or a guard stopped goes on, since somebody asked for it again. */
export async function startRun(ledger: Ledger, { id, state, by }: Run, who: string): Promise<void> {
  if (state === 'running' || (state === 'paused' && by === 'operator')) return;
  await ledger.steer(id, Date.now(), { action: 'start', reason: '', by: 'operator', who });
}
