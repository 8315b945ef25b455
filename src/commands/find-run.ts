import { ExpungeError } from '../errors.ts';
import { type Run, readRun, schemaVersion } from '../ledger/run.ts';
import { findRunId } from '../ledger/run-id.ts';
import type { Session } from './session.ts';

/** The run a person means by its id or an end of it. Throws USAGE if there is none, or if another release wrote it. */
export async function findRun({ redis }: Session, text: string | undefined): Promise<Run> {
  const id = await findRunId(redis, text ?? '');
  const run = await readRun(redis, id);
  if (run === null)
    throw new ExpungeError('USAGE', `run ${id} is no longer in Redis`, { next: 'expunge runs lists them' });
  refuseOtherRelease(run);
  return run;
}

/** What another release has written this one would misread. */
export function refuseOtherRelease({ id, schema }: Run): void {
  if (schema === schemaVersion) return;
  const message = `run ${id} was written by another release (version ${schema}, expected ${schemaVersion})`;
  throw new ExpungeError('USAGE', message, { next: 'use that release for it until it has ended' });
}
