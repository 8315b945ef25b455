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

/** For so long a run is kept at least that has ended and whose report nobody has got yet. */
export const undeliveredMs = 86_400_000;

/**
 * Lua: ends a run for good. Its record expires from then on, and the other keys that the caller names; the rest of them, of which there may be
 * millions, are left to `expireRun`. Nobody waits for the report of a detached run, nor of one that ends `unattended`.
 */
export const sealFunction = `${activeTimeFunctions}
local function seal(state, isUnattended, runKey, ...)
  local now = redisTime()
  stopTime(runKey, now)
  redis.call('HSET', runKey, 'state', state, 'sealed', now, 'endedAt', now)
  local run = redis.call('HMGET', runKey, 'keepMs', 'detached')
  local keepMs, isDelivered = tonumber(run[1] or '0'), isUnattended or run[2] == '1'
  if isDelivered then redis.call('HSET', runKey, 'delivered', now) else keepMs = math.max(keepMs, ${undeliveredMs}) end
  for _, key in ipairs({runKey, ...}) do redis.call('PEXPIRE', key, keepMs) end
end
`;
