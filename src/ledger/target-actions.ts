import { type StopAction, stopsFromStored } from '../limiter/stop.ts';
import type { RedisClient } from '../redis/client.ts';
import { keys } from '../redis/keys.ts';
import { noteAuditLua, storedEntry } from './audit.ts';
import { addEventFunction, eventArguments, type OutboxEvent, outboxKeys } from './outbox.ts';
import { liftedFunction, type SeenAuthor, targetChanged, targetRevisionFunctions } from './steer-target.ts';

/*
 * The actions for a target as its processes remember them. Redis may lose an action that it has acknowledged. Each action has an id. An action that
 * is neither in force nor among the lifted ones was lost, and a process that knows it writes it again.
 */

/** A limit, or a minimum of grace periods (in ms), as Redis holds it (`bound`); `at`: the time of the action, in ms since 1970. */
export type BoundAction = { id: string; bound: string; who: string; reason: string; at: number };

/** A schedule that an operator has paused. */
export type ScheduleAction = { id: string; who: string; reason: string; at: number };

/** The actions in force for a target; `null` = none. */
export type TargetActions = {
  stops: StopAction[];
  limit: BoundAction | null;
  grace: BoundAction | null;
  /** Every schedule, with its pause by an operator. */
  schedules: Map<string, ScheduleAction | null>;
};

/** Reads the actions in force for a target. */
export async function readTargetActions(redis: RedisClient, fp: string): Promise<TargetActions> {
  const [stop, bounds, names] = await Promise.all([
    redis.get(keys.stop(fp)),
    redis.hgetall(keys.bounds(fp)),
    redis.smembers(keys.schedules(fp)),
  ]);
  const paused = names.map(async (name): Promise<[string, ScheduleAction | null]> => {
    const fields = ['state', 'actionId', 'who', 'reason', 'changedAt'] as const;
    const [state, id, who, reason, at] = await redis.hmget(keys.schedule(fp, name), ...fields);
    return [name, state === 'paused' && id ? { id, who: who ?? '', reason: reason ?? '', at: Number(at) } : null];
  });
  const { limit, limitId = '', limitBy = '', limitReason = '', limitAt } = bounds;
  const { grace, graceId = '', graceBy = '', graceReason = '', graceAt } = bounds;
  return {
    stops: stopsFromStored(stop ?? ''),
    limit: limit ? { id: limitId, bound: limit, who: limitBy, reason: limitReason, at: Number(limitAt) } : null,
    grace: grace ? { id: graceId, bound: grace, who: graceBy, reason: graceReason, at: Number(graceAt) } : null,
    schedules: new Map(await Promise.all(paused)),
  };
}

/** Finds which of these actions were lifted or replaced. */
export async function findLifted(redis: RedisClient, fp: string, ids: readonly string[]): Promise<Set<string>> {
  if (ids.length === 0) return new Set();
  const scores = await redis.zmscore(keys.lifted(fp), ...ids);
  return new Set(ids.filter((_, i) => scores[i] !== null));
}

const lostReason = 'Redis had lost it';

/** Writes a lost limit or minimum again, unless it was lifted, or a later one is in force. Returns whether it did. */
export async function restoreBound(
  redis: RedisClient,
  fp: string,
  kind: 'limit' | 'grace',
  { id, bound, who, reason, at }: BoundAction,
): Promise<boolean> {
  const entry = storedEntry({
    at: Date.now(),
    action: kind,
    by: 'guard',
    who,
    reason,
    actionId: id,
    restored: lostReason,
  });
  const all = [keys.bounds(fp), keys.lifted(fp), keys.targetAudit(fp), keys.targetRevision(fp)];
  return (await redis.eval(restoreBoundLua, 4, ...all, kind, id, bound, who, reason, at, entry)) === 1;
}

// KEYS 1 bounds  2 lifted  3 audit  4 revision  ARGV 1 limit or grace  2 id  3 bound  4 who  5 reason  6 at  7 audit entry
const restoreBoundLua = `${targetRevisionFunctions}
if redis.call('ZSCORE', KEYS[2], ARGV[2]) then return 0 end
local fields = ({
  limit = {'limitId', 'limit', 'limitBy', 'limitReason', 'limitAt'},
  grace = {'graceId', 'grace', 'graceBy', 'graceReason', 'graceAt'},
})[ARGV[1]]
local is = redis.call('HMGET', KEYS[1], unpack(fields))
if is[2] and (is[1] == ARGV[2] or tonumber(is[5] or '0') > tonumber(ARGV[6])) then return 0 end
for i, field in ipairs(fields) do redis.call('HSET', KEYS[1], field, ARGV[i + 1]) end
move(KEYS[4])
${noteAuditLua('KEYS[3]', 'ARGV[7]')}
return 1
`;

/** Pauses a schedule again whose pause was lost, unless it was resumed. Returns whether it did. */
export async function restoreSchedulePause(
  redis: RedisClient,
  fp: string,
  name: string,
  { id, who, reason, at }: ScheduleAction,
): Promise<boolean> {
  const entry = JSON.stringify({ at: Date.now(), by: 'guard', who, reason, action: 'pause', restored: lostReason });
  const all = [keys.schedule(fp, name), keys.lifted(fp), keys.scheduleAudit(fp, name)];
  return (await redis.eval(restorePauseLua, 3, ...all, id, who, reason, at, entry)) === 1;
}

// KEYS 1 schedule  2 lifted  3 audit  ARGV 1 id  2 who  3 reason  4 at  5 audit entry
const restorePauseLua = `
if redis.call('HGET', KEYS[1], 'state') ~= 'active' or redis.call('ZSCORE', KEYS[2], ARGV[1]) then return 0 end
redis.call('HSET', KEYS[1], 'state', 'paused', 'actionId', ARGV[1], 'who', ARGV[2], 'reason', ARGV[3], 'changedAt', ARGV[4], 'pausedBy', '')
redis.call('HDEL', KEYS[1], 'waiting')
redis.call('HINCRBY', KEYS[1], 'revision', 1)
${noteAuditLua('KEYS[3]', 'ARGV[5]')}
return 1
`;

/** An action of a target that Redis has lost and no process can write again; `what`: for people, like `schedule nightly`. `at`: ms since 1970. */
export type Loss = { id: string; what: string; at: number };

/** Reads the losses that were not acknowledged. */
export async function readLosses(redis: RedisClient, fp: string): Promise<Loss[]> {
  return Object.values(await redis.hgetall(keys.losses(fp))).map((text) => JSON.parse(text) as Loss);
}

/** Records a loss with its event, unless it was recorded or acknowledged. Returns whether it did. */
export async function noteLoss(redis: RedisClient, fp: string, loss: Loss, event: OutboxEvent): Promise<boolean> {
  const all = [keys.losses(fp), keys.lifted(fp), ...outboxKeys(fp), keys.targetRevision(fp)];
  const said = [loss.id, loss.what, JSON.stringify(loss), ...eventArguments(event)];
  return (await redis.eval(noteLossLua, all.length, ...all, ...said)) === 1;
}

// KEYS 1 losses  2 lifted  3 outbox  4 events  5 revision  ARGV 1 id  2 what  3 loss  4 id of the event  5 event
const noteLossLua = `${addEventFunction}${targetRevisionFunctions}
if redis.call('ZSCORE', KEYS[2], ARGV[1]) or redis.call('HSETNX', KEYS[1], ARGV[2], ARGV[3]) == 0 then return 0 end
addEvent(KEYS[3], KEYS[4], ARGV[4], ARGV[5])
move(KEYS[5])
return 1
`;

/**
 * Acknowledges what Redis has lost, so that the workers of the target are ready again. Returns false if there was nothing. Throws GUARD if the target
 * has changed since it was seen.
 */
export async function acknowledgeLosses(
  redis: RedisClient,
  fp: string,
  { seen, ...author }: SeenAuthor,
): Promise<boolean> {
  const entry = storedEntry({ action: 'acknowledge', by: 'operator', ...author });
  const all = [keys.losses(fp), keys.lifted(fp), keys.targetAudit(fp), keys.targetRevision(fp)];
  const done = await redis.eval(acknowledgeLua, 4, ...all, entry, seen ?? '');
  if (done === -1) throw targetChanged();
  return done === 1;
}

// KEYS 1 losses  2 lifted  3 audit  4 revision  ARGV 1 audit entry  2 the revision that was seen, or ''
const acknowledgeLua = `${liftedFunction}${targetRevisionFunctions}
local all = redis.call('HVALS', KEYS[1])
if #all == 0 then return 0 end
if hasMoved(KEYS[4], ARGV[2]) then return -1 end
move(KEYS[4])
for _, loss in ipairs(all) do noteLifted(KEYS[2], cjson.decode(loss).id) end
redis.call('DEL', KEYS[1])
${noteAuditLua('KEYS[3]', 'ARGV[1]')}
return 1
`;

/**
 * Counts the looks of all processes of a target, except for the looks of idle processes, and returns how many there were. If there are fewer than
 * before, Redis has lost data, even if no connection broke.
 */
export async function countLook(redis: RedisClient, fp: string, by: 0 | 1): Promise<number> {
  if (by === 0) return Number(await redis.hget(keys.witness(fp), 'looks'));
  return redis.hincrby(keys.witness(fp), 'looks', 1);
}
