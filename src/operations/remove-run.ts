import { ExpungeError } from '../errors.ts';
import { noteTargetAction } from '../ledger/audit.ts';
import { changedSince } from '../ledger/changed-since.ts';
import { wentWell } from '../ledger/conclusion.ts';
import { anyRun, noteSuccess, removeRun as removeIfSeen } from '../ledger/end-run.ts';
import { isFinalized, type Run, readRun, schemaVersion } from '../ledger/run.ts';
import { finalizeTally } from '../ledger/tally.ts';
import type { RedisClient } from '../redis/client.ts';
import { describeRejection } from '../redis/errors.ts';
import { publishChanges } from '../worker/event-sources.ts';
import type { SeenAction } from './action.ts';
import { removeOwnQueue } from './liveness.ts';
import { findRun, type Session } from './session.ts';

/** A removed run, as it was last. */
export type Removed = { run: Run; warnings: string[] };

export async function removeRun(session: Session, { run: text, by, seen }: SeenAction): Promise<Removed> {
  const { redis } = session;
  const run = await findRun(session, text);
  if (run.revision !== seen) throw changedSince(run, null, 'removed');
  requireEndedForRemoval(run);
  const noted = { at: Date.now(), action: 'remove', ...by, by: 'operator' } as const;
  const note = () => noteTargetAction(redis, run.fp, { ...noted, run: run.id }).then(() => '', unlessFull);
  const isNoted = (await note()) === '';
  await passEndOn(redis, run).catch(unlessFull);
  if (!(await removeIfSeen(redis, run))) {
    await noteTargetAction(redis, run.fp, { ...noted, action: 'not removed', run: run.id }).catch(() => {});
    throw changedSince((await readRun(redis, run.id)) ?? run, run, 'removed');
  }
  await removeOwnQueue(session, run);
  const full = isNoted ? '' : await note();
  const warnings = full === '' ? [] : [`the audit trail does not record it: Redis rejects writes: ${full}`];
  return { run, warnings };
}

/** Throws USAGE for a run that has not ended. One whose list was not written completely can be removed. */
export function requireEndedForRemoval({ id, state }: Run): void {
  if (isFinalized(state) || state === 'preparing') return;
  throw new ExpungeError('USAGE', `run ${id} is ${state}; only a run that has ended can be removed`, {
    next: (toType) => `cancel it first: ${toType('cancel', id)}`,
  });
}

/** Publishes the end of a detached run, as a worker would if it had seen the run before its removal. Repeating it adds nothing. */
async function passEndOn(redis: RedisClient, run: Run): Promise<void> {
  if (!run.detached || !isFinalized(run.state) || run.schema !== schemaVersion) return;
  const ended = await finalizeTally(redis, run);
  if (run.published < run.changes) await publishChanges(redis, ended, run);
  if (wentWell(ended)) await noteSuccess(redis, run.fp, anyRun, ended.endedAt);
}

/** The reason if Redis has no memory for the audit entry: then the removal, which frees memory, comes first. Throws any other error. */
function unlessFull(error: unknown): string {
  const words = describeRejection(error);
  if (!words.includes('OOM')) throw error;
  return words;
}
