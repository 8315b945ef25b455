import { noteTold, readChanges } from '../ledger/changes.ts';
import { haltExamples } from '../ledger/halt-examples.ts';
import { addEvent, readToldOutages, tellOutage } from '../ledger/outbox.ts';
import type { Run } from '../ledger/run.ts';
import { readTargetState } from '../limiter/read-target.ts';
import type { Target } from '../model/target.ts';
import { outageChanges, outageEvent, runEvent, stallChanges, stallEvent } from '../notify/events.ts';
import type { RedisClient } from '../redis/client.ts';

/** How far the changes of a run were passed on. */
type Told = { changes: number; told: number };

/**
 * Passes the changes of a run's state on to the outbox of its target, which has another hash tag. Repeating it, also by two workers at once
 * or after a crash, adds no event twice.
 */
export async function passChangesOn(redis: RedisClient, run: Run, { changes, told }: Told): Promise<void> {
  for (const change of await readChanges(redis, run.id, changes, told)) {
    if (change.state === 'cancelling') continue;
    const examples = change.state === 'halted' ? await haltExamples(redis, run) : [];
    await addEvent(redis, run.fp, runEvent(run, change, examples));
  }
  await noteTold(redis, run.id, changes);
}

/** Puts an event into the outbox for each outage and each stall of a target that has begun or ended since the last call of any worker. */
export async function tellOutages(redis: RedisClient, target: Target): Promise<void> {
  const [told, states] = await Promise.all([readToldOutages(redis, target.fp), readTargetState(redis, target.fp)]);
  for (const change of outageChanges(told, states))
    await tellOutage(redis, target.fp, change, outageEvent(target, change));
  for (const change of stallChanges(told, states))
    await tellOutage(redis, target.fp, change, stallEvent(target, change));
}
