import { randomUUID } from 'node:crypto';
import { durationText } from '../config/settings.ts';
import { ExpungeError } from '../errors.ts';
import { type Stop, stopFromStored } from '../limiter/stop.ts';
import { type Rate, rateSetting, storedRate } from '../model/rate.ts';
import type { RedisClient } from '../redis/client.ts';
import { keys } from '../redis/keys.ts';
import { noteAuditLua, storedEntry } from './audit.ts';

/** The person who asks for a change, the reason and the time (ms since 1970); recorded in the target's audit trail. */
export type Author = { who: string; reason: string; at: number };

/** The same for an action that loosens something. `seen`: the revision that the person was shown; for any other revision nothing is done. */
export type SeenAuthor = Author & { seen?: number };

/** Reads the revision of a target, which moves with every change of its stops, its limit, its grace and its known losses. */
export async function readTargetRevision(redis: RedisClient, fp: string): Promise<number> {
  return Number((await redis.get(keys.targetRevision(fp))) ?? 0);
}

/** Lua: whether a target has changed since it was seen ('' = it was not seen); and the function that moves its revision. */
export const targetRevisionFunctions = `
local function hasMoved(key, seen)
  return seen ~= '' and seen ~= (redis.call('GET', key) or '0')
end

local function move(key)
  redis.call('INCR', key)
end
`;

/** The refusal of an action whose target has changed since it was shown. */
export function targetChanged(): ExpungeError {
  const words = 'the stops, the limit, the grace or the losses of this target have changed since they were shown';
  return new ExpungeError('GUARD', `${words}; nothing was done`, {
    next: (toType) => `look at it, then repeat the action: ${toType('status', '--base-url', 'URL', '--audit')}`,
  });
}

/**
 * Ends the wait or the lower rate that the server asked for, and an open circuit, in the limiter of a target. Its processes follow with their next
 * call, 100 ms later. Returns false if there was nothing to end.
 */
export function releaseTarget(redis: RedisClient, fp: string, author: Author): Promise<boolean> {
  return steer(redis, fp, 'release', '', { action: 'release', ...author });
}

/** Forgets the learned rate of a target, which is then learned from scratch. Returns false if no rate was known. */
export function forgetRate(redis: RedisClient, fp: string, author: Author): Promise<boolean> {
  return steer(redis, fp, 'forget', '', { action: 'forget-rate', ...author });
}

/**
 * Limits the requests to a target over all its runs and processes: its bound per second paces them, and each longer bound is a quota, for any window of
 * its period. Nothing that was learned is forgotten. Requests from before a quota do not count. Null ends the limit. Returns false if this is its limit
 * already. Throws GUARD if the target has changed since it was seen.
 */
export function setLimit(redis: RedisClient, fp: string, limit: Rate | null, author: SeenAuthor): Promise<boolean> {
  const stored = limit === null ? '' : storedRate(limit);
  return steer(redis, fp, 'limit', stored, { action: 'limit', ...author, limit: limit && rateSetting(limit) });
}

/**
 * Sets the shortest grace period of runs that are made from now on; 0 ends it. Returns false if this is the minimum already. Throws GUARD if the
 * target has changed since it was seen.
 */
export function setMinGrace(redis: RedisClient, fp: string, ms: number, author: SeenAuthor): Promise<boolean> {
  const entry = { action: 'grace', ...author, grace: ms === 0 ? null : durationText(ms) };
  return steer(redis, fp, 'grace', ms === 0 ? '' : String(ms), entry);
}

/** The stop of a target before and after an action, and whether the action changed anything. */
export type StopChange = { before: Stop | null; after: Stop | null; isChanged: boolean };

/**
 * Stops all runs of a target, including later ones. Each operator has a stop of their own, which is kept. Repeating it changes nothing. `id` names an
 * action that was lost; it is written only if it was not lifted.
 */
export function stopTarget(redis: RedisClient, fp: string, author: Author, id = newActionId()): Promise<StopChange> {
  return setStop(redis, fp, 'stop', { action: 'stop-all', ...author }, id);
}

/**
 * Ends the stop that this operator asked for, or all stops if this operator has none. In the first case the stops of others stay, and another call
 * ends them. Repeating it after the last stop changes nothing. Throws GUARD if the target has changed since it was seen.
 */
export function startTarget(redis: RedisClient, fp: string, author: SeenAuthor): Promise<StopChange> {
  return setStop(redis, fp, 'start', { action: 'start-all', ...author }, '');
}

/** A name for an action, which distinguishes an action that was lifted from one that Redis has lost. */
export function newActionId(): string {
  return randomUUID().slice(0, 13);
}

const keptLifted = 1_000;

/** Lua: records that an action for a target was lifted or replaced. */
export const liftedFunction = `
local function noteLifted(key, id)
  if not id or id == '' then return end
  local time = redis.call('TIME')
  redis.call('ZADD', key, time[1] * 1000 + math.floor(time[2] / 1000), id)
  redis.call('ZREMRANGEBYRANK', key, 0, -${keptLifted + 1})
end
`;

// KEYS 1 bounds  2 audit of the target  3 lifted actions  4 revision  5 its limiter
// ARGV 1 release, forget, limit or grace  2 rate or ms as stored, '' = none  3 who  4 reason  5 at  6 audit entry  7 names the action
//      8 the revision that was seen, or ''
// Returns 1 if anything changed, -1 if a limit or a grace was refused because the target has changed.
const steerLua = `${liftedFunction}${targetRevisionFunctions}
local time = redis.call('TIME')
local now = time[1] * 1000 + time[2] / 1000
local isChanged = false

-- The epoch separates permits and answers from before the change. An update of the state that is under way finds that its turn is over.
local limiter = KEYS[5]
local function begin(mark)
  redis.call('HINCRBY', limiter, 'turn', 1)
  redis.call('HSET', limiter, mark, redis.call('HINCRBY', limiter, 'epoch', 1), 'validFrom', string.format('%.4f', now), 'tat', string.format('%.4f', now))
  isChanged = true
end

local function release()
  local held = redis.call('HMGET', limiter, 'holdUntil', 'closed', 'announced')
  if tonumber(held[1] or '0') <= now and not held[2] and (held[3] or '') == '' then return end
  redis.call('HDEL', limiter, 'holdUntil', 'holdWhy', 'closed', 'closedWhy', 'closedAt', 'outageSince', 'probeGap', 'probeAt',
    'unreachableAt', 'alarmWhy', 'alarmKind', 'announced', 'claimLeft', 'claimEndsAt')
  redis.call('HSET', limiter, 'released', 1) -- for the next state
  begin('releasedEpoch')
end

local function forget()
  if redis.call('HEXISTS', limiter, 'state') == 0 then return end
  redis.call('HDEL', limiter, 'state', 'rate', 'phase', 'high', 'inFlight', 'recall')
  begin('dropEpoch')
end

local fields = ({
  limit = {'limit', 'limitBy', 'limitReason', 'limitAt'},
  grace = {'grace', 'graceBy', 'graceReason', 'graceAt'},
})[ARGV[1]]
if fields then
  if (redis.call('HGET', KEYS[1], fields[1]) or '') == ARGV[2] then return 0 end
  if hasMoved(KEYS[4], ARGV[8]) then return -1 end
  move(KEYS[4])
  local idField = ARGV[1] .. 'Id'
  noteLifted(KEYS[3], redis.call('HGET', KEYS[1], idField))
  if ARGV[2] == '' then redis.call('HDEL', KEYS[1], idField) else redis.call('HSET', KEYS[1], idField, ARGV[7]) end
  if ARGV[2] == '' then
    redis.call('HDEL', KEYS[1], unpack(fields))
  else
    for i, field in ipairs(fields) do redis.call('HSET', KEYS[1], field, ARGV[i + 1]) end
  end
  isChanged = true
end
if ARGV[1] == 'release' then release() elseif ARGV[1] == 'forget' then forget() end
if not isChanged then return 0 end
${noteAuditLua('KEYS[2]', 'ARGV[6]')}
return 1
`;

type Entry = SeenAuthor & {
  action: string;
  limit?: string | null;
  grace?: string | null;
};

async function steer(
  redis: RedisClient,
  fp: string,
  action: string,
  bound: string,
  { seen, ...entry }: Entry,
): Promise<boolean> {
  const all = [keys.bounds(fp), keys.targetAudit(fp), keys.lifted(fp), keys.targetRevision(fp), keys.limiter(fp)];
  const noted = storedEntry({ by: 'operator', ...entry });
  const { who, reason, at } = entry;
  const said = [action, bound, who, reason, at, noted, newActionId(), seen ?? ''];
  const done = await redis.eval(steerLua, all.length, ...all, ...said);
  if (done === -1) throw targetChanged();
  return done === 1;
}

// KEYS 1 stop  2 audit of the target  3 lifted actions  4 revision
// ARGV 1 stop or start  2 the stop of this operator, as stored  3 audit entry  4 the revision that was seen, or ''
// Returns {the stops before, the stops after, 1 if anything was changed, -1 if a start was refused because the target has changed}.
const stopLua = `${liftedFunction}${targetRevisionFunctions}
local before, own = redis.call('GET', KEYS[1]) or '', cjson.decode(ARGV[2])
local all = {}
if before ~= '' then
  local isRead, stop = pcall(cjson.decode, before)
  if not isRead or type(stop) ~= 'table' then stop = {by = 'operator', who = '?', reason = '', at = 0} end
  all[1] = stop
  for _, other in ipairs(stop.others or {}) do all[#all + 1] = other end
  stop.others = nil
end
local function store()
  if #all == 0 then redis.call('DEL', KEYS[1]) return '' end
  local stop, others = all[1], {}
  for i = 2, #all do others[#others + 1] = all[i] end
  if #others > 0 then stop.others = others end
  local text = cjson.encode(stop)
  redis.call('SET', KEYS[1], text)
  return text
end
if ARGV[1] == 'stop' then
  if redis.call('ZSCORE', KEYS[3], own.id) then return {before, before, 0} end
  local place = #all + 1
  for i, one in ipairs(all) do
    if one.id == own.id or one.who == own.who and (one.reason == own.reason or own.reason == '') then return {before, before, 0} end
    if one.who == own.who then place = i end
  end
  if all[place] then noteLifted(KEYS[3], all[place].id) end
  all[place] = own
else
  if #all == 0 then return {before, before, 0} end
  if hasMoved(KEYS[4], ARGV[4]) then return {before, before, -1} end
  local left = {}
  for _, one in ipairs(all) do
    if one.who ~= own.who then left[#left + 1] = one end
  end
  if #left == #all then left = {} end
  for _, one in ipairs(all) do
    local stays = false
    for _, other in ipairs(left) do stays = stays or other == one end
    if not stays then noteLifted(KEYS[3], one.id) end
  end
  all = left
end
local after = store()
move(KEYS[4])
${noteAuditLua('KEYS[2]', 'ARGV[3]')}
return {before, after, 1}
`;

async function setStop(
  redis: RedisClient,
  fp: string,
  action: 'stop' | 'start',
  { seen, ...entry }: SeenAuthor & { action: string },
  id: string,
): Promise<StopChange> {
  const { who, reason, at } = entry;
  const noted = storedEntry({ by: 'operator', ...entry });
  const stop = JSON.stringify({ by: 'operator', who, reason, at, id });
  const all = [keys.stop(fp), keys.targetAudit(fp), keys.lifted(fp), keys.targetRevision(fp)];
  const [before, after, changed] = (await redis.eval(stopLua, 4, ...all, action, stop, noted, seen ?? '')) as [
    string,
    string,
    number,
  ];
  if (changed === -1) throw targetChanged();
  return { before: stopFromStored(before), after: stopFromStored(after), isChanged: changed === 1 };
}
