import { leaseFunction } from './lease.lua.ts';
import { budgetFull, named, stateArguments } from './script-fields.ts';

/**
 * Stores the next state. Does nothing if another process has begun an update since: its sums are newer.
 *
 * KEYS  1 limiter
 * ARGV  stateArguments; returns 1, or 0 if it came too late
 */
export const storeStateLua = `${leaseFunction}
${named(stateArguments)}
local s = redis.call('HMGET', KEYS[1], 'turn', 'rate', 'tat', 'epoch', 'closed', 'unreachableAt')
if s[1] ~= asked.turn then return 0 end
local now, tat, epoch = redisNow(asked.given), tonumber(s[3] or '0'), tonumber(s[4])
local function time(value) return string.format('%.4f', value) end
if asked.steps == '1' then
  epoch = epoch + 1
  if asked.drops == '1' then
    tat = math.min(tat, now)
    redis.call('HSET', KEYS[1], 'dropEpoch', epoch)
  elseif tonumber(asked.rate) > tonumber(s[2] or '0') then
    tat = math.min(tat, now + reach)
  end
  redis.call('HSET', KEYS[1], 'validFrom', asked.validFrom)
end
if asked.closed ~= '' then
  redis.call('HSET', KEYS[1], 'closed', asked.closed, 'closedWhy', asked.closedWhy, 'probeGap', asked.probeGap)
  -- The script of the call moves closedAt on while the target is stopped, for what the outage costs; outageSince stays, for what is told of it.
  if not s[5] then
    redis.call('HSET', KEYS[1], 'closedAt', asked.closedAt, 'outageSince', asked.closedAt, 'probeAt', time(now + tonumber(asked.probeGap)))
  end
  -- A wait or refusals that become an outage: it begins now.
  if (s[5] == 'held' or s[5] == 'refused') and asked.closed ~= 'held' and asked.closed ~= s[5] then
    redis.call('HSET', KEYS[1], 'closedAt', time(now), 'outageSince', time(now))
  end
  -- It refuses now, so it can be reached. What the outage costs goes on, because still nothing is accepted.
  if s[5] == 'unreachable' and asked.closed == 'refused' then
    redis.call('HSET', KEYS[1], 'outageSince', time(now))
    redis.call('HDEL', KEYS[1], 'unreachableAt')
  end
  if asked.closed == 'unreachable' and not s[6] then redis.call('HSET', KEYS[1], 'unreachableAt', time(now)) end
elseif s[5] then
  tat = now
  redis.call('HDEL', KEYS[1], 'closed', 'closedWhy', 'closedAt', 'outageSince', 'probeGap', 'probeAt', 'unreachableAt')
  redis.call('HSET', KEYS[1], 'budget', ${budgetFull})
end
redis.call('HSET', KEYS[1], 'epoch', epoch, 'tat', time(tat), 'state', asked.json, 'rate', asked.rate, 'phase', asked.phase,
  'high', asked.limitMet, 'inFlight', asked.inFlight, 'announced', asked.announced, 'released', 0, 'recall', 0)
redis.call('PEXPIRE', KEYS[1], 7776000000)
return 1
`;
