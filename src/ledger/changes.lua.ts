/** How many changes of a run are kept until they are told. */
export const keptChanges = 50;

/**
 * Lua: the revision of a run, which moves with every change of its state, of the rules that it obeys and of the pauses that hold it. An order that
 * starts, continues or removes a run names the revision that was shown: what has moved since was not seen. `edits` counts what is no change of state.
 */
export const revisionFunctions = `
local function revisionOf(runKey)
  local is = redis.call('HMGET', runKey, 'changes', 'edits')
  return tonumber(is[1] or '0') + tonumber(is[2] or '0')
end

local function noteEdit(runKey)
  redis.call('HINCRBY', runKey, 'edits', 1)
end
`;

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
