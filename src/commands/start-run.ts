import type { Run } from '../ledger/run.ts';
import { type Session, whoAmI } from './session.ts';

/** A run that somebody paused is left paused; one that an interrupt or a guard stopped goes on, since somebody asked for it again. */
export async function startRun({ ledger }: Session, { id, state, by }: Run, reason: string): Promise<void> {
  if (state === 'running' || (state === 'paused' && by === 'operator')) return;
  const why = state === 'planned' ? '' : reason; // that of a new run stands with its submission
  await ledger.steer(id, Date.now(), { action: 'start', reason: why, by: 'operator', who: whoAmI() });
}
