import { markPublished, readChanges } from '../ledger/changes.ts';
import { haltExamples } from '../ledger/halt-examples.ts';
import {
  addEvent,
  publishTrouble,
  publishWait,
  readPublishedTroubles,
  readWaits,
  type StoredWait,
} from '../ledger/outbox.ts';
import { countPending, isFinalized, type Run, readRun, schemaVersion } from '../ledger/run.ts';
import { type Cause, findStandings, type Standing, seenFromOutside } from '../ledger/standing.ts';
import { tallyIfFinalized } from '../ledger/tally.ts';
import { readTargetState } from '../limiter/read-target.ts';
import { readStops } from '../limiter/stop.ts';
import type { Target } from '../model/target.ts';
import {
  outageChanges,
  outageEvent,
  runEvent,
  stallChanges,
  stallEvent,
  startingEvent,
  waitingEvent,
} from '../notify/events.ts';
import { waitChanges } from '../notify/waits.ts';
import type { RedisClient } from '../redis/client.ts';
import { keys } from '../redis/keys.ts';

/** The number of changes of a run, and how many of them were passed on. */
type PublishedChanges = { changes: number; published: number };

/**
 * Passes the changes of a run's state on to the outbox of its target, which has another hash tag. Repeating it adds no event twice, even by two
 * workers at once or after a crash. `dashboardUrl`: for a link to a run before its start; '' = not known.
 */
export async function publishChanges(
  redis: RedisClient,
  run: Run,
  { changes, published }: PublishedChanges,
  dashboardUrl = '',
): Promise<void> {
  for (const change of await readChanges(redis, run.id, changes, published)) {
    if (change.state === 'cancelling') continue;
    const examples = change.state === 'halted' ? await haltExamples(redis, run) : [];
    await addEvent(redis, run.fp, runEvent(run, change, examples));
    if (change.state === 'running' && run.state === 'running' && run.startsAt > change.at)
      await addEvent(redis, run.fp, startingEvent(run, change, dashboardUrl));
  }
  await markPublished(redis, run.id, changes);
}

/** Passes on the changes of a run since the last time. */
export async function publishNewChanges(redis: RedisClient, id: string, dashboardUrl = ''): Promise<void> {
  const [changes, published] = await redis.hmget(keys.run(id), 'changes', 'published');
  const run = changes === published ? null : await readRun(redis, id);
  if (run === null) return;
  const all = { changes: Number(changes), published: Number(published) };
  await publishChanges(redis, await tallyIfFinalized(redis, run), all, dashboardUrl);
}

/** Skips the changes of a run before the first receiver was set up. */
export async function skipOldChanges(redis: RedisClient, id: string): Promise<void> {
  const [changes, published] = await redis.hmget(keys.run(id), 'changes', 'published');
  if (changes !== null && published === null) await markPublished(redis, id, Number(changes));
}

/** Puts an event into the outbox for each outage and each stall of a target that began or ended since the last call of any worker. */
export async function publishOutages(redis: RedisClient, target: Target): Promise<void> {
  const [published, limiter] = await Promise.all([
    readPublishedTroubles(redis, target.fp),
    readTargetState(redis, target.fp),
  ]);
  for (const change of outageChanges(published, limiter))
    await publishTrouble(redis, target.fp, 'outage', change, outageEvent(target, change));
  for (const change of stallChanges(published, limiter))
    await publishTrouble(redis, target.fp, 'stall', change, stallEvent(target, change));
}

/**
 * Puts an event into the outbox for each of these runs of a target that has made no progress for a quarter of an hour. The cause has to be the same
 * all the time, and one that a person may want to end. Redis keeps the state, so another worker, or a restarted one, continues with it. `now`: ms
 * since 1970.
 */
export async function publishWaits(
  redis: RedisClient,
  target: Target,
  ids: readonly string[],
  now: number,
): Promise<void> {
  const stored = await readWaits(redis, target.fp);
  const runs = [...new Set([...ids, ...stored.map(({ run }) => run)])];
  if (runs.length === 0) return;
  const [limiter, stops] = await Promise.all([readTargetState(redis, target.fp), readStops(redis, target.fp)]);
  const shared = { ...seenFromOutside, now, target, limiter, stops };
  for (const id of runs) {
    const run = await readRun(redis, id);
    const known = stored.filter((wait) => wait.run === id);
    if (run === null || isFinalized(run.state)) await forgetWaits(redis, target, known);
    else if (run.schema === schemaVersion)
      await publishRunWaits(redis, run, findStandings({ ...shared, run }), known, now);
  }
}

async function forgetWaits(redis: RedisClient, { fp }: Target, known: readonly StoredWait[]): Promise<void> {
  for (const { run, why, text } of known) await publishWait(redis, fp, { run, why, from: text, to: null }, null);
}

async function publishRunWaits(
  redis: RedisClient,
  run: Run,
  standings: readonly Standing[],
  stored: readonly StoredWait[],
  now: number,
): Promise<void> {
  const known = new Map(stored.map(({ why, text }) => [why as Cause, JSON.parse(text)]));
  const held = { why: standings[0]?.why ?? null, settled: run.rows - countPending(run) };
  for (const { why, to, isNewlyPublished } of waitChanges(known, held, now)) {
    const from = stored.find((wait) => wait.why === why)?.text ?? null;
    const event = isNewlyPublished && to !== null ? waitingEvent(run, standings, to.since, now) : null;
    await publishWait(redis, run.fp, { run: run.id, why, from, to: to && JSON.stringify(to) }, event);
  }
}
