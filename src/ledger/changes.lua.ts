/** How many changes of a run are kept until they are told. */
export const keptChanges = 50;

/**
 * Lua: records that a run is in another state now, which its record says already. Part of each script that changes the state, so that no
 * change is missed. `changes` counts them; `told` is the last one that was passed on.
 */
export const changeFunction = `
local function noteChange(runKey, now)
  local n = redis.call('HINCRBY', runKey, 'changes', 1)
  local is = redis.call('HMGET', runKey, 'state', 'reason', 'by', 'who', 'halt')
  local change = {n = n, at = now, state = is[1], reason = is[2] or '', by = is[3] or '', who = is[4] or '', halt = is[5] or ''}
  redis.call('HSET', runKey, 'change:' .. n, cjson.encode(change))
  redis.call('HDEL', runKey, 'change:' .. (n - ${keptChanges}))
end
`;
