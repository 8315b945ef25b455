/** Who works on a run says so at least every few seconds. After a longer silence nobody did: that is no deleting time. */
export const longestSilenceMs = 10_000;

/** Lua: the deleting time of a run. `activeUntil` is up to when it is counted; a run that isn't running has none. */
export const activeTimeFunctions = `
local function redisTime()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

local function countTime(runKey, now)
  local ms = now - tonumber(redis.call('HGET', runKey, 'activeUntil') or now)
  redis.call('HSET', runKey, 'activeUntil', now)
  if ms > 0 and ms <= ${longestSilenceMs} then redis.call('HINCRBY', runKey, 'activeMs', ms) end
end

local function stopTime(runKey, now)
  if redis.call('HEXISTS', runKey, 'activeUntil') == 0 then return end
  countTime(runKey, now)
  redis.call('HDEL', runKey, 'activeUntil')
end
`;
