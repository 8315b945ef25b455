import { changeFunction } from './changes.lua.ts';

/** The longest gap between two reports of the processes that work on a run, in ms. A longer gap does not count as deleting time. */
export const maxSilenceMs = 10_000;

/** Lua: counts the deleting time of a run up to `activeUntil`, a field that only a running run has. */
export const activeTimeFunctions = `
local function redisTime()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

local function countTime(runKey, now)
  local ms = now - tonumber(redis.call('HGET', runKey, 'activeUntil') or now)
  redis.call('HSET', runKey, 'activeUntil', now)
  if ms > 0 and ms <= ${maxSilenceMs} then redis.call('HINCRBY', runKey, 'activeMs', ms) end
end

local function stopTime(runKey, now)
  if redis.call('HEXISTS', runKey, 'activeUntil') == 0 then return end
  countTime(runKey, now)
  redis.call('HDEL', runKey, 'activeUntil')
end
`;

/**
 * Lua: if the clock of Redis was set back, or a server with an earlier clock took over, moves due times to as long from now as they were then. Also
 * has the run find out again whether its window is open. Needs `redisTime`.
 */
export const followClockFunction = `
local function followClock(runKey, deferred)
  local last, now = 0, redisTime()
  for _, at in ipairs(redis.call('HMGET', runKey, 'activeUntil', 'changedAt', 'closedAt')) do last = math.max(last, tonumber(at or '0') or 0) end
  local aheadMs = math.floor(last - now)
  if aheadMs <= 1000 then return end
  for _, field in ipairs({'activeUntil', 'changedAt'}) do
    if tonumber(redis.call('HGET', runKey, field) or '0') > now then redis.call('HSET', runKey, field, now) end
  end
  redis.call('HDEL', runKey, 'closedUntil', 'closedAt')
  local all = redis.call('ZRANGE', deferred, 0, -1, 'WITHSCORES')
  for i = 1, #all, 2 do redis.call('ZINCRBY', deferred, -aheadMs, all[i]) end
end
`;

/**
 * The shortest time for which an ended run is kept until it is handed over, in ms: its report is delivered, and the end of a detached run is passed on
 * to the outbox, which keeps it as long.
 */
export const handOverMs = 86_400_000;

/** The shortest time for which an ended run is kept if a worker is to deliver its results, in ms. Then Redis forgets the run, delivered or not. */
export const resultsKeptMs = 30 * 86_400_000;

/**
 * Lua: finalizes a run. It sets the expiry of its record and of the other keys that the caller names; `expireRun` does the rest, possibly millions of
 * keys. The report of a detached run, or of a run that ends unattended, counts as delivered: no command waits for it.
 */
export const finalizeFunction = `${activeTimeFunctions}${changeFunction}
local function finalize(state, isUnattended, runKey, ...)
  local now = redisTime()
  stopTime(runKey, now)
  redis.call('HSET', runKey, 'state', state, 'finalized', now, 'endedAt', now)
  noteChange(runKey, now)
  local run = redis.call('HMGET', runKey, 'keepMs', 'detached', 'resultsWanted')
  local keepMs, isDelivered = tonumber(run[1] or '0'), isUnattended or run[2] == '1'
  if isDelivered then redis.call('HSET', runKey, 'delivered', now) end
  if not isDelivered or run[2] == '1' then keepMs = math.max(keepMs, ${handOverMs}) end
  if run[3] then keepMs = math.max(keepMs, ${resultsKeptMs}) end
  for _, key in ipairs({runKey, ...}) do redis.call('PEXPIRE', key, keepMs) end
end
`;
