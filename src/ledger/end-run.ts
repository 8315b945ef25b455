import type { RedisClient } from '../redis/client.ts';
import { keys, runKeys } from '../redis/keys.ts';
import { handOverMs } from './active-time.lua.ts';
import { revisionFunctions } from './changes.lua.ts';
import { resultsKeepMs } from './results.ts';
import { type Run, setFields } from './run.ts';

const keysAtOnce = 500;

/**
 * The time for which a finalized run is kept, in ms. It is `keepMs`, but at least a day if its report was not delivered or its end not passed on, and
 * at least 30 days if its results are not delivered. Pure.
 */
export function keepTimeMs(run: Run): number {
  const isHandedOver = run.delivered > 0 && !(run.detached && run.published < run.changes);
  return resultsKeepMs(run, isHandedOver ? run.keepMs : Math.max(run.keepMs, handOverMs));
}

/** Sets the expiry of all keys of a finalized run; finalization has set it only for the record. Repeating it restarts the time. */
export async function expireRun(redis: RedisClient, run: Run): Promise<void> {
  const ms = keepTimeMs(run);
  await eachGroup(run, (group) => Promise.all(group.map((key) => redis.pexpire(key, ms))));
  await redis.eval(expireListLua, 1, keys.list(run.list), run.id, ms);
  await redis.eval(expireRecordLua, 1, keys.run(run.id), ms);
}

/** Records that the report of a run was delivered, and to which folder or file. Repeating it is harmless. */
export async function markDelivered(redis: RedisClient, { id }: Run, reportIn: string): Promise<void> {
  await setFields(redis, id, { delivered: Date.now(), reportIn });
}

/**
 * Removes a run with all its keys if it is still as the caller saw it. After that, no process can start it. Returns false, and removes nothing, if it
 * has changed since. Repeating it is harmless; an interrupted call leaves keys that are removed like those of an expired run.
 */
export async function removeRun(redis: RedisClient, run: Run): Promise<boolean> {
  if ((await redis.eval(forgetSeenLua, 1, keys.run(run.id), run.revision)) !== 1) return false;
  await unlinkRun(redis, run);
  return true;
}

/** Removes all keys of a run, whatever its state. Repeating it is harmless. */
export async function unlinkRun(redis: RedisClient, run: Run): Promise<void> {
  await redis.srem(keys.targetRuns(run.fp), run.id); // first: otherwise its workers would report the run as lost
  await eachGroup(run, (group) => Promise.all(group.map((key) => redis.unlink(key))));
  await redis.unlink(keys.run(run.id));
  await redis.eval(forgetListLua, 1, keys.list(run.list), run.id);
  await redis.zrem(keys.undelivered(run.fp), run.id);
  await redis.zrem(keys.runs, run.id);
}

/**
 * Removes a run that was not started, if its `createdBy` begins like this. After that, no process can start it. A run that was started or taken over
 * stays. Repeating it is harmless; an interrupted call leaves keys that are removed like those of an expired run.
 */
export async function removeIfUnstarted(redis: RedisClient, run: Run, createdBy: string): Promise<void> {
  if ((await redis.eval(forgetUnstartedLua, 1, keys.run(run.id), createdBy)) === 1) await unlinkRun(redis, run);
}

// KEYS 1 run  ARGV 1 the revision that the caller saw; removes the record of a run with this revision. Returns 1 if no record is left
const forgetSeenLua = `${revisionFunctions}
if redis.call('EXISTS', KEYS[1]) == 0 then return 1 end
if revisionOf(KEYS[1]) ~= tonumber(ARGV[1]) then return 0 end
return redis.call('DEL', KEYS[1])
`;

// KEYS 1 run  ARGV 1 start of `createdBy`; removes the record, and returns 1 if it did
const forgetUnstartedLua = `
local is = redis.call('HMGET', KEYS[1], 'state', 'createdBy')
if is[1] ~= 'preparing' and is[1] ~= 'planned' or string.sub(is[2], 1, #ARGV[1]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])
`;

// Each script checks first that its key still belongs to the run: the record may expire at any time, and the list may be another run's.

// KEYS 1 list  ARGV 1 run  2 ms
const expireListLua = `if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end`;

// KEYS 1 list  ARGV 1 run
const forgetListLua = `if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end`;

// KEYS 1 run  ARGV 1 ms
const expireRecordLua = `
if redis.call('EXISTS', KEYS[1]) == 0 then return end
redis.call('HSET', KEYS[1], 'isExpiring', 1)
redis.call('PEXPIRE', KEYS[1], ARGV[1])
`;

/** Whether Redis still has chunks of a run whose record has expired. */
export async function hasRemains(redis: RedisClient, id: string): Promise<boolean> {
  return (await redis.exists(keys.manifest(id, 0), keys.ledger(id, 0))) > 0;
}

const numbersAtOnce = 100;

/** Removes the other keys of a run whose record has expired. The number of chunks is unknown, so it continues until none is found. */
export async function removeRemains(redis: RedisClient, id: string): Promise<void> {
  for (const key of smallKeysOf(id)) await redis.unlink(key);
  for (let from = 0, found = 1; found > 0; from += numbersAtOnce) {
    const numbers = Array.from({ length: numbersAtOnce }, (_, i) => from + i);
    const numbered = numbers.flatMap((n) => [keys.manifest(id, n), keys.ledger(id, n), keys.settled(id, n)]);
    found = await redis.unlink(...numbered);
  }
}

/**
 * All keys of a run but its record, 500 at a time. The last chunks come first: the keys that an interrupted call leaves begin at number 0, so they
 * can be found without the record.
 */
async function eachGroup(run: Run, handle: (group: string[]) => Promise<unknown>): Promise<void> {
  let group: string[] = [];
  for (const key of keysOf(run)) {
    if (group.push(key) < keysAtOnce) continue;
    await handle(group);
    group = [];
  }
  await handle(group);
}

function* keysOf(run: Run): Generator<string> {
  for (let n = run.blocks - 1; n >= 0; n--) yield keys.settled(run.id, n);
  for (let n = run.chunks - 1; n >= 0; n--) {
    yield keys.manifest(run.id, n);
    yield keys.ledger(run.id, n);
  }
  yield* smallKeysOf(run.id);
}

function smallKeysOf(id: string): string[] {
  const { run, manifest, ledger, settled, resultsLease, ...small } = runKeys; // the lease soon expires by itself
  return Object.values(small).map((key) => key(id));
}

/** The name under which the end of any detached run of a target is recorded. */
export const anyRun = '';

/** Records when a run of a schedule, or any run (`anyRun`), last went well, in ms since 1970. An earlier time changes nothing. */
export async function noteSuccess(redis: RedisClient, fp: string, of: string, endedAt: number): Promise<void> {
  const known = Number((await redis.hget(keys.lastSuccess(fp), of)) ?? 0);
  if (endedAt > known) await redis.hset(keys.lastSuccess(fp), of, endedAt);
}

/** Reads when a run of each existing schedule last went well, in ms since 1970; `anyRun`: any run. */
export async function readSuccesses(redis: RedisClient, fp: string): Promise<Record<string, number>> {
  const [hash, schedules] = await Promise.all([
    redis.hgetall(keys.lastSuccess(fp)),
    redis.smembers(keys.schedules(fp)),
  ]);
  const known = Object.entries(hash).filter(([of]) => of === anyRun || schedules.includes(of));
  return Object.fromEntries(known.map(([of, at]) => [of, Number(at)]));
}
