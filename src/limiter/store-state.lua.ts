import { leaseFunction } from './lease.lua.ts';
import { budgetFull, named, stateArguments } from './script-fields.ts';

/** Stores the next state. Does nothing if another process has begun an update since, because that process has newer sums. */
export const storeStateLua = `${leaseFunction}
${named(stateArguments)}
local s = redis.call('HMGET', KEYS[1], 'turn', 'rate', 'tat', 'epoch', 'closed', 'unreachableAt', 'horizon')
if s[1] ~= asked.turn then return 0 end
local now, tat, epoch = redisNow(asked.given), tonumber(s[3] or '0'), tonumber(s[4])
local horizon, validFrom = tonumber(s[7] or '0'), tonumber(asked.validFrom)
local function time(value) return string.format('%.4f', value) end
if asked.steps == '1' then
  epoch = epoch + 1
  if asked.drops == '1' then
    tat = math.min(tat, now)
    redis.call('HSET', KEYS[1], 'dropEpoch', epoch, 'droppedAt', time(now))
    redis.call('HDEL', KEYS[1], 'horizon')
  else
    -- Until the horizon, permits of the old rate are used.
    if aheadOf(now, horizon, 0) > 0 then validFrom = math.max(validFrom, horizon) end
    if tonumber(asked.rate) > tonumber(s[2] or '0') then tat = math.min(tat, math.max(now + reach, horizon - callEvery)) end
  end
  redis.call('HSET', KEYS[1], 'validFrom', time(validFrom))
end
if asked.closed ~= '' then
  redis.call('HSET', KEYS[1], 'closed', asked.closed, 'closedWhy', asked.closedWhy, 'probeGap', asked.probeGap)
  -- While the target is stopped, the script of the call moves closedAt forward, for the cost of the outage; outageSince stays, for reports about it.
  if not s[5] then
    redis.call('HSET', KEYS[1], 'closedAt', asked.closedAt, 'outageSince', asked.closedAt, 'probeAt', time(now + tonumber(asked.probeGap)))
  end
  -- A wait or refusals became an outage, which begins now.
  if (s[5] == 'held' or s[5] == 'refused') and asked.closed ~= 'held' and asked.closed ~= s[5] then
    redis.call('HSET', KEYS[1], 'closedAt', time(now), 'outageSince', time(now))
  end
  -- The target refuses now, so it can be reached. The cost of the outage continues, because it still accepts nothing.
  if s[5] == 'unreachable' and asked.closed == 'refused' then
    redis.call('HSET', KEYS[1], 'outageSince', time(now))
    redis.call('HDEL', KEYS[1], 'unreachableAt')
  end
  if asked.closed == 'unreachable' and not s[6] then redis.call('HSET', KEYS[1], 'unreachableAt', time(now)) end
elseif s[5] then
  tat = now
  redis.call('HDEL', KEYS[1], 'horizon', 'closed', 'closedWhy', 'closedAt', 'outageSince', 'probeGap', 'probeAt', 'unreachableAt')
  redis.call('HSET', KEYS[1], 'budget', ${budgetFull})
end
redis.call('HSET', KEYS[1], 'epoch', epoch, 'tat', time(tat), 'state', asked.json, 'rate', asked.rate, 'phase', asked.phase,
  'high', asked.limitMet, 'inFlight', asked.inFlight, 'announced', asked.announced, 'released', 0, 'recall', 0)
redis.call('PEXPIRE', KEYS[1], 7776000000)
return 1
`;
