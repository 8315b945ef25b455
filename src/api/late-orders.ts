import { setTimeout as sleep } from 'node:timers/promises';
import { messageOf } from '../errors.ts';
import { noteFailedOrder } from '../ledger/audit.ts';
import type { ApiDeps } from './route.ts';

/** An order for a run, and who gave it why. */
type Given = { run: string; order: string; who: string; reason: string };

const answerAfterMs = 2_000;
const noteEveryMs = 2_000;
const notesAtMost = 300; // ten minutes: Redis, which may be why the order failed, has to be back for the note

/**
 * Whether an order is done within two seconds; throws what it throws until then. One that takes longer goes on: if it fails, the audit trail
 * of its run says so, for whoever was answered that it is being done.
 */
export async function isDoneSoon(deps: Pick<ApiDeps, 'session' | 'log'>, given: Given, done: Promise<unknown>) {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<false>((resolve) => {
    timer = setTimeout(resolve, answerAfterMs, false).unref();
  });
  try {
    const isDone = await Promise.race([done.then(() => true), late]);
    if (!isDone) done.catch((error) => noteFailure(deps, given, messageOf(error)));
    return isDone;
  } finally {
    clearTimeout(timer);
  }
}

async function noteFailure({ session, log }: Pick<ApiDeps, 'session' | 'log'>, given: Given, error: string) {
  const { run, ...order } = given;
  log.warn({ run, order: order.order, reason: error }, 'an order was not carried out');
  const failed = { at: Date.now(), ...order, error };
  for (let n = 0; n < notesAtMost; n++) {
    try {
      return await noteFailedOrder(session.redis, run, failed);
    } catch {
      await sleep(noteEveryMs, undefined, { ref: false });
    }
  }
}
