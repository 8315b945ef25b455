import type { Run } from '../ledger/run.ts';
import { type Session, whoAmI } from './session.ts';

/** A run that somebody paused is left paused; one that an interrupt or a guard stopped goes on, since somebody asked for it again. */
export async function startRun({ ledger }: Session, { id, state, by }: Run): Promise<void> {
  if (state === 'running' || (state === 'paused' && by === 'operator')) return;
  await ledger.steer(id, Date.now(), { action: 'start', reason: '', by: 'operator', who: whoAmI() });
}
