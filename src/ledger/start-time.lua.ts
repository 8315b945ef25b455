/**
 * Lua: the earliest start of a run. Until then its chunks are not enqueued, and none of its ids is marked, so nothing of it is sent. `startsAt` is a
 * moment of the clock of Redis and is stored with the run, so a copy of older Redis files has the same moment. A clock that is set back delays the
 * start; a clock that is set forward brings it closer.
 *
 * The latest of three moments counts: `startAt`, and the end of `graceMs` and of `minGraceMs` after `acceptedAt`.
 */
export const startTimeFunctions = `
local function setStart(runKey)
  local run = redis.call('HMGET', runKey, 'acceptedAt', 'graceMs', 'minGraceMs', 'startAt')
  local at, graceMs = tonumber(run[4] or '0'), math.max(tonumber(run[2] or '0'), tonumber(run[3] or '0'))
  if graceMs > 0 then at = math.max(at, tonumber(run[1]) + graceMs) end
  if at == 0 then return redis.call('HDEL', runKey, 'startsAt') end
  redis.call('HSET', runKey, 'startsAt', string.format('%.0f', at))
end
`;

/** Lua: whether the start of a run is still to come. `startsAt`: as stored, false = it starts at once. */
export const isEarlyFunction = `
local function isEarly(startsAt)
  if not startsAt then return false end
  local time = redis.call('TIME')
  return time[1] * 1000 + time[2] / 1000 < tonumber(startsAt)
end
`;
