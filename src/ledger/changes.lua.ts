/** The number of changes of a run that are kept until they are passed on. */
export const keptChanges = 50;

/**
 * Lua: the revision of a run, which moves with every change of its state, of the rules that it obeys and of the pauses that hold it. An action that
 * starts, continues or removes a run names the revision that was shown, so later changes are noticed. `edits` counts changes of anything but the
 * state.
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
 * Lua: records that a run has changed its state, which is in its record already. Part of each script that changes the state, so that no change is
 * missed. `changes` counts the changes; `published` is the last change that was passed on to the outbox.
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
