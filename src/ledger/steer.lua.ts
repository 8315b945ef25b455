import { finalizeFunction, followClockFunction } from './active-time.lua.ts';
import { noteAuditLua } from './audit.ts';
import { revisionFunctions } from './changes.lua.ts';
import { checkServerFunction } from './doubt.lua.ts';
import { haltFunctions } from './halt-rules.ts';

/** The number of lifted pauses that a run remembers, and of operators that can pause it at once. */
const keptPauses = 50;

/**
 * Lua: the pauses of a run that operators asked for, oldest first. A `resume` lifts the pause of its own author; if the author has none, it lifts
 * all.
 */
const pausesFunction = `
local function pausesOf(runKey)
  return cjson.decode(redis.call('HGET', runKey, 'pauses') or '[]')
end

local function storePauses(runKey, pauses)
  if #pauses == 0 then redis.call('HDEL', runKey, 'pauses') else redis.call('HSET', runKey, 'pauses', cjson.encode(pauses)) end
end

-- So a process that remembers a lifted or replaced pause does not mistake it for a lost one.
local function noteLifted(runKey, lifted)
  for id in string.gmatch(redis.call('HGET', runKey, 'liftedPauses') or '', '%S+') do
    if #lifted < ${keptPauses} then lifted[#lifted + 1] = id end
  end
  if #lifted > 0 then redis.call('HSET', runKey, 'liftedPauses', ' ' .. table.concat(lifted, ' ') .. ' ') end
end

local function notePause(runKey, pause)
  local pauses = pausesOf(runKey)
  for i, one in ipairs(pauses) do
    if one.id == pause.id or one.who == pause.who and (one.reason == pause.reason or pause.reason == '') then return false end
    if one.who == pause.who then
      noteLifted(runKey, {one.id})
      pauses[i] = pause
      storePauses(runKey, pauses)
      return true
    end
  end
  if #pauses >= ${keptPauses} then return false end
  pauses[#pauses + 1] = pause
  storePauses(runKey, pauses)
  return true
end

-- Returns the remaining pauses.
local function liftPauses(runKey, who)
  local pauses, left, lifted = pausesOf(runKey), {}, {}
  for _, one in ipairs(pauses) do
    if one.who ~= who then left[#left + 1] = one end
  end
  if #left == #pauses then left = {} end
  for _, one in ipairs(pauses) do
    local stays = false
    for _, other in ipairs(left) do stays = stays or other.id == one.id end
    if not stays then lifted[#lifted + 1] = one.id end
  end
  noteLifted(runKey, lifted)
  storePauses(runKey, left)
  return left
end
`;

/**
 * Changes the state of a run, if its current state allows the change. Repeating it changes nothing.
 *
 * A pause by an operator is also kept if the run is halted, or already paused by a colleague or by an interrupt or a guard. Only a `start` by an
 * operator without ARGV 7 lifts it. Such a pause, or a cancel, of a run that is still being written takes effect once it is written.
 *
 * KEYS  1 run  2 open  3 deferred  4 audit
 * ARGV  1 action  2 reason  3 by: operator, interrupt or guard  4 who  5 halt code or ''  6 audit entry
 *       7 the only state in which to act, or ''; if it is set, no pause of an operator is lifted. 'planned' also continues a run whose command
 *         was interrupted since: this is that command again
 *       8 names this action  9 the revision that was seen, or ''  10… facts about the Redis process
 * returns {state before or 'missing', state after, 1 if anything was changed, -1 if a start was refused because the run has changed since}
 */
export const steerLua = `${checkServerFunction}${finalizeFunction}${followClockFunction}${haltFunctions}${revisionFunctions}${pausesFunction}
local state = redis.call('HGET', KEYS[1], 'state')
if not state then return {'missing', 'missing', 0} end
local now = redisTime()
local function setState(next, reason, by, who, halt)
  redis.call('HSET', KEYS[1], 'state', next, 'reason', reason, 'by', by, 'who', who, 'halt', halt, 'changedAt', now)
end
local function done(next)
  ${noteAuditLua('KEYS[4]', 'ARGV[6]')}
  if next == state then noteEdit(KEYS[1]) end
  return {state, next, 1}
end

local isStale = ARGV[9] ~= '' and tonumber(ARGV[9]) ~= revisionOf(KEYS[1])
if ARGV[1] == 'start' and isStale and (state == 'preparing' or state == 'planned' or state == 'paused' or state == 'halted') then return {state, state, -1} end

-- The action was written again because it seemed lost, but it had been lifted.
if ARGV[1] == 'pause' and string.find(redis.call('HGET', KEYS[1], 'liftedPauses') or '', ' ' .. ARGV[8] .. ' ', 1, true) then return {state, state, 0} end
if ARGV[1] == 'pause' and ARGV[3] == 'operator' and (state == 'paused' or state == 'halted' or state == 'preparing') then
  if not notePause(KEYS[1], {id = ARGV[8], who = ARGV[4], reason = ARGV[2], at = now}) then return {state, state, 0} end
  local first, is = pausesOf(KEYS[1])[1], redis.call('HMGET', KEYS[1], 'by', 'who', 'reason')
  if state == 'paused' and (is[1] ~= 'operator' or is[2] ~= first.who or is[3] ~= first.reason) then
    setState('paused', first.reason, 'operator', first.who, '')
    noteChange(KEYS[1], now)
  end
  return done(state)
end
if ARGV[1] == 'cancel' and state == 'preparing' then
  if redis.call('HEXISTS', KEYS[1], 'cancelBy') == 1 then return {state, state, 0} end
  redis.call('HSET', KEYS[1], 'cancelBy', cjson.encode({by = ARGV[3], who = ARGV[4], reason = ARGV[2]}))
  return done(state)
end
if ARGV[1] == 'start' and #pausesOf(KEYS[1]) > 0 then
  if ARGV[7] ~= '' or ARGV[3] ~= 'operator' then return {state, state, 0} end
  if state == 'paused' or state == 'halted' or state == 'preparing' then
    local left = liftPauses(KEYS[1], ARGV[4])
    if state == 'paused' and #left > 0 then
      setState('paused', left[1].reason, 'operator', left[1].who, '')
      noteChange(KEYS[1], now)
    end
    if #left > 0 or state == 'preparing' then return done(state) end
  end
end

local allowed = {
  start = {planned = 'running', paused = 'running', halted = 'running'},
  pause = {running = 'paused', planned = 'paused'},
  halt = {running = 'halted'},
  cancel = {planned = 'cancelling', running = 'cancelling', paused = 'cancelling', halted = 'cancelling'},
}
local next = allowed[ARGV[1]][state]
local wasInterrupted = ARGV[7] == 'planned' and state == 'paused' and redis.call('HGET', KEYS[1], 'by') == 'interrupt'
if not next or ARGV[7] ~= '' and ARGV[7] ~= state and not wasInterrupted then return {state, state, 0} end

if ARGV[1] == 'start' then followClock(KEYS[1], KEYS[3]) end
-- After a loss no open id must read as never sent, neither at finalization nor when the run continues.
if ARGV[1] == 'cancel' then checkServer(KEYS[1], KEYS[4], ARGV[10], ARGV[11], ARGV[12]) end
local halted = redis.call('HMGET', KEYS[1], 'halt', 'canary')
if halted[1] == 'ledger_lost' then raiseDoubt(KEYS[1], KEYS[4], 'Redis had lost a part of the run') end

setState(next, ARGV[2], ARGV[3], ARGV[4], ARGV[5])
if next == 'paused' and ARGV[3] == 'operator' then storePauses(KEYS[1], {{id = ARGV[8], who = ARGV[4], reason = ARGV[2], at = now}}) end
stopTime(KEYS[1], now)
if next == 'running' then
  -- The operator who resumes a run has seen why it halted: its rules count from here.
  redis.call('HSET', KEYS[1], 'activeUntil', now, 'settledAtStart', redis.call('HGET', KEYS[1], 'settled') or 0, 'failuresAtStart', failuresOf(KEYS[1]))
  redis.call('HSET', KEYS[1], 'activeAtStart', redis.call('HGET', KEYS[1], 'activeMs') or 0)
  if halted[1] == 'canary' then
    redis.call('HSET', KEYS[1], 'canary', string.match(halted[2], '^%S+ (.*)$') or '', 'failuresAtRung', failuresOf(KEYS[1]))
  end
  -- Nor does a --stop-at stop it if that time has passed since. A new run has not been stopped: it sends nothing after its own --stop-at.
  local stopAt = state ~= 'planned' and redis.call('HGET', KEYS[1], 'stopAt')
  if stopAt and tonumber(stopAt) <= now then redis.call('HDEL', KEYS[1], 'stopAt') end
  redis.call('HDEL', KEYS[1], 'unexpected')
  redis.call('HSETNX', KEYS[1], 'startedAt', now)
  -- A run whose cells were all settled while it was not running has nothing left to do.
  local counts = redis.call('HMGET', KEYS[1], 'ids', 'settled')
  if counts[1] == counts[2] then next = 'completed' end
end
if next == 'cancelling' then
  redis.call('HDEL', KEYS[1], 'pauses')
  -- Unclaimed chunks are deferred at once. A holder returns its chunk within a second.
  local open = redis.call('HGETALL', KEYS[2])
  local held = 0
  for i = 1, #open, 2 do
    if open[i + 1] == '0' then
      redis.call('ZADD', KEYS[3], now, open[i])
      redis.call('HDEL', KEYS[2], open[i])
    else
      held = held + 1
    end
  end
  if held == 0 then next = 'cancelled' end
end
done(next)
if next ~= 'completed' and next ~= 'cancelled' then noteChange(KEYS[1], now) end -- finalization records those
-- No command waits for the end of a run that was not running: the cancelling command reports where its outcomes are.
if next == 'completed' or next == 'cancelled' then
  finalize(next, next == 'cancelled' and state ~= 'running', KEYS[1], KEYS[2], KEYS[3], KEYS[4])
end
return {state, next, 1}
`;
