/**
 * KEYS  1 schedule  2 schedules  3 audit  4 history  5 hand
 * ARGV  1 name  2 definition  3 note  4 '1' to replace another one  5 now  6 who  7 audit entry of an addition  8 of a change
 *       9 what the file of protected ids holds, or ''
 * returns added, same, exists or changed. Repeating it gives same.
 */
export const addLua = `
local state = redis.call('HGET', KEYS[1], 'state')
local isThere = state and state ~= 'removed'
if isThere then
  local same = redis.call('HGET', KEYS[1], 'definition') == ARGV[2] and redis.call('HGET', KEYS[1], 'note') == ARGV[3]
  if same then return 'same' end
  if ARGV[4] ~= '1' then return 'exists' end
  redis.call('HSET', KEYS[1], 'definition', ARGV[2], 'note', ARGV[3], 'after', ARGV[5], 'protectedList', ARGV[9])
  redis.call('HDEL', KEYS[1], 'waiting', 'waived')
  redis.call('DEL', KEYS[5]) -- whoever makes a run of it now goes by the definition of before
else
  redis.call('HSET', KEYS[1], 'definition', ARGV[2], 'note', ARGV[3], 'after', ARGV[5],
    'state', 'active', 'reason', '', 'who', ARGV[6], 'changedAt', ARGV[5], 'protectedList', ARGV[9])
  redis.call('HDEL', KEYS[1], 'waiting', 'waived', 'pausedBy', 'lastSha256', 'rows', 'toArchive')
  for _, key in ipairs({KEYS[1], KEYS[3], KEYS[4]}) do redis.call('PERSIST', key) end
  redis.call('SADD', KEYS[2], ARGV[1])
end
redis.call('LPUSH', KEYS[3], isThere and ARGV[8] or ARGV[7])
redis.call('LTRIM', KEYS[3], 0, 99)
return isThere and 'changed' or 'added'
`;

/**
 * KEYS  1 schedule  2 schedules  3 audit  4 history
 * ARGV  1 pause, resume or remove  2 name  3 reason  4 who  5 now  6 guard that asks for it or ''  7 audit entry  8 ms to keep a removed one
 * returns {state before or 'missing', state after}. Slots that passed while it was paused are not made up for.
 */
export const steerLua = `
local state = redis.call('HGET', KEYS[1], 'state')
if not state then return {'missing', 'missing'} end
local allowed = {
  pause = {active = 'paused'},
  resume = {paused = 'active'},
  remove = {active = 'removed', paused = 'removed'},
}
local next = allowed[ARGV[1]][state]
if not next then return {state, state} end
redis.call('HSET', KEYS[1], 'state', next, 'reason', ARGV[3], 'who', ARGV[4], 'changedAt', ARGV[5])
redis.call('HDEL', KEYS[1], 'waiting')
if next == 'active' then
  redis.call('HSET', KEYS[1], 'after', ARGV[5], 'waived', redis.call('HGET', KEYS[1], 'pausedBy') or '', 'pausedBy', '')
else
  redis.call('HSET', KEYS[1], 'pausedBy', ARGV[6], 'waived', '')
end
redis.call('LPUSH', KEYS[3], ARGV[7])
redis.call('LTRIM', KEYS[3], 0, 99)
if next == 'removed' then
  redis.call('SREM', KEYS[2], ARGV[2])
  for _, key in ipairs({KEYS[1], KEYS[3], KEYS[4]}) do redis.call('PEXPIRE', key, ARGV[8]) end
end
return {state, next}
`;

/**
 * KEYS  1 schedule  2 history  3 hand  4 slot
 * ARGV  1 token that must be in the hand  2 '1' if the schedule must be active  3 run for the slot or ''  4 ms to keep it  5 history or ''
 *       6… fields and values
 * returns done, lost, stopped or taken. Repeating it after 'done' gives 'taken' where a slot was claimed, else the same.
 */
export const settleLua = `
if redis.call('GET', KEYS[3]) ~= ARGV[1] then return 'lost' end
if ARGV[2] == '1' and redis.call('HGET', KEYS[1], 'state') ~= 'active' then return 'stopped' end
if ARGV[3] ~= '' and not redis.call('SET', KEYS[4], ARGV[3], 'NX', 'PX', ARGV[4]) then return 'taken' end
if ARGV[5] ~= '' then redis.call('SET', KEYS[2], ARGV[5], 'KEEPTTL') end
if #ARGV > 5 then redis.call('HSET', KEYS[1], unpack(ARGV, 6)) end
return 'done'
`;
