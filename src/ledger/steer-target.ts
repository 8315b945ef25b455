import { limiterScopes } from '../limiter/read-target.ts';
import { type Stop, stopFromStored, storedStop } from '../limiter/stop.ts';
import { type Rate, rateSetting, storedRate } from '../model/rate.ts';
import type { RedisClient } from '../redis/client.ts';
import { keys } from '../redis/keys.ts';
import { noteAuditLua, storedEntry } from './audit.ts';

/** Who orders a change, why, and when (ms since 1970); it is recorded in the target's audit trail. */
export type OperatorOrder = { who: string; reason: string; at: number };

/**
 * Ends what the server asked for (a wait, or a lower rate) and an open circuit, in all limiters of a target. Its processes follow with their
 * next call, 100 ms later. Returns false if there was nothing to end.
 */
export function releaseTarget(redis: RedisClient, fp: string, order: OperatorOrder): Promise<boolean> {
  return steer(redis, fp, 'release', '', { action: 'release', ...order });
}

/** Forgets the learned rate of a target; it is learned anew. Returns false if nothing was known. */
export function forgetRate(redis: RedisClient, fp: string, order: OperatorOrder): Promise<boolean> {
  return steer(redis, fp, 'forget', '', { action: 'forget-rate', ...order });
}

/**
 * Pins the rate of a target: from now on it begins at this rate and never exceeds it. Null ends that. A new pin forgets the learned rate.
 * Returns false if the target was pinned to this rate already.
 */
export function pinRate(redis: RedisClient, fp: string, rate: Rate | null, order: OperatorOrder): Promise<boolean> {
  const stored = rate === null ? '' : storedRate(rate);
  return steer(redis, fp, 'pin', stored, { action: 'pin-rate', ...order, rate: rate && rateSetting(rate) });
}

/**
 * Bounds what is sent to a target over all its runs and processes: each bound is a quota, for any window of its period. Requests from before the
 * budget do not count. Null ends it. Returns false if this is its budget already.
 */
export function setBudget(redis: RedisClient, fp: string, budget: Rate | null, order: OperatorOrder): Promise<boolean> {
  const stored = budget === null ? '' : storedRate(budget);
  return steer(redis, fp, 'budget', stored, { action: 'budget', ...order, budget: budget && rateSetting(budget) });
}

/** Stops all runs of a target, also later ones. A stop that is in force already stays as it is. Returns the stop before, or null. */
export function stopTarget(redis: RedisClient, fp: string, order: OperatorOrder): Promise<Stop | null> {
  return setStop(redis, fp, storedStop({ by: 'operator', ...order }), { action: 'stop-all', ...order });
}

/** Ends the stop of a target. Returns the stop before, or null. Repeating it changes nothing. */
export function startTarget(redis: RedisClient, fp: string, order: OperatorOrder): Promise<Stop | null> {
  return setStop(redis, fp, '', { action: 'start-all', ...order });
}

// KEYS 1 pin  2 audit of the target  3… its limiters  ARGV 1 release, forget, pin or budget  2 rate as stored, '' = none  3 who  4 reason  5 at
// 6 audit entry; returns 1 if anything changed
const steerLua = `
local time = redis.call('TIME')
local now = time[1] * 1000 + time[2] / 1000
local isChanged = false

-- The epoch separates permits and answers from before the change; an update of the state that is under way finds that its turn is over.
local function begin(key, mark)
  redis.call('HINCRBY', key, 'turn', 1)
  redis.call('HSET', key, mark, redis.call('HINCRBY', key, 'epoch', 1), 'validFrom', string.format('%.4f', now), 'tat', string.format('%.4f', now))
  isChanged = true
end

local function release(key)
  local held = redis.call('HMGET', key, 'holdUntil', 'closed', 'announced')
  if tonumber(held[1] or '0') <= now and not held[2] and (held[3] or '') == '' then return end
  redis.call('HDEL', key, 'holdUntil', 'holdWhy', 'closed', 'closedWhy', 'closedAt', 'probeGap', 'probeAt', 'unreachableAt',
    'alarmWhy', 'alarmKind', 'announced', 'claimLeft', 'claimEndsAt')
  redis.call('HSET', key, 'released', 1) -- for the next state
  begin(key, 'releasedEpoch')
end

local function forget(key)
  if redis.call('HEXISTS', key, 'state') == 0 then return end
  redis.call('HDEL', key, 'state', 'rate', 'phase', 'high', 'inFlight', 'recall')
  begin(key, 'dropEpoch')
end

local fields = ({pin = {'rate', 'who', 'reason', 'at'}, budget = {'budget', 'budgetBy', 'budgetReason', 'budgetAt'}})[ARGV[1]]
if fields then
  if (redis.call('HGET', KEYS[1], fields[1]) or '') == ARGV[2] then return 0 end
  if ARGV[2] == '' then
    redis.call('HDEL', KEYS[1], unpack(fields))
  else
    for i, field in ipairs(fields) do redis.call('HSET', KEYS[1], field, ARGV[i + 1]) end
  end
  isChanged = true
end
for i = 3, ARGV[1] == 'budget' and 0 or #KEYS do
  if ARGV[1] == 'release' then release(KEYS[i]) elseif ARGV[1] == 'forget' or ARGV[2] ~= '' then forget(KEYS[i]) end
end
if not isChanged then return 0 end
${noteAuditLua('KEYS[2]', 'ARGV[6]')}
return 1
`;

type Entry = OperatorOrder & { action: string; rate?: string | null; budget?: string | null };

async function steer(redis: RedisClient, fp: string, action: string, rate: string, entry: Entry): Promise<boolean> {
  const all = [keys.pin(fp), keys.targetAudit(fp), ...limiterScopes.map((scope) => keys.limiter(fp, scope))];
  const noted = storedEntry({ by: 'operator', ...entry });
  const { who, reason, at } = entry;
  return (await redis.eval(steerLua, all.length, ...all, action, rate, who, reason, at, noted)) === 1;
}

// KEYS 1 stop 2 audit of the target  ARGV 1 stop, '' = none any more  2 audit entry; returns the stop before, or ''
const stopLua = `
local before = redis.call('GET', KEYS[1]) or ''
if ARGV[1] ~= '' then
  redis.call('SET', KEYS[1], ARGV[1], 'NX')
elseif before == '' then
  return before
else
  redis.call('DEL', KEYS[1])
end
${noteAuditLua('KEYS[2]', 'ARGV[2]')}
return before
`;

async function setStop(
  redis: RedisClient,
  fp: string,
  stop: string,
  entry: OperatorOrder & { action: string },
): Promise<Stop | null> {
  const noted = storedEntry({ by: 'operator', ...entry });
  return stopFromStored(String(await redis.eval(stopLua, 2, keys.stop(fp), keys.targetAudit(fp), stop, noted)));
}
