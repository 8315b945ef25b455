import { sealFunction } from './active-time.lua.ts';
import { noteAuditLua } from './audit.ts';
import { checkServerFunction } from './doubt.lua.ts';
import { countersLua, type HaltRule, haltFunctions } from './halt-rules.ts';

/**
 * Changes the state of a run, if the change is allowed from its current state. Repeating it changes nothing.
 *
 * KEYS  1 run  2 open  3 later  4 audit
 * ARGV  1 action  2 reason  3 by: operator, interrupt or guard  4 who  5 halt code or ''  6 audit entry  7 the state from which alone, or '';
 *       from planned a run goes on, too, whose command was interrupted meanwhile: this is that command again
 *       8… what is known of the Redis process
 * returns {state before or 'missing', state after}
 */
export const steerLua = (rules: readonly HaltRule[]) => `${checkServerFunction}${sealFunction}${haltFunctions}
local state = redis.call('HGET', KEYS[1], 'state')
if not state then return {'missing', 'missing'} end
local now = redisTime()
local allowed = {
  start = {planned = 'running', paused = 'running', halted = 'running'},
  pause = {running = 'paused', planned = 'paused'},
  halt = {running = 'halted'},
  cancel = {planned = 'cancelling', running = 'cancelling', paused = 'cancelling', halted = 'cancelling'},
}
local next = allowed[ARGV[1]][state]
local wasInterrupted = ARGV[7] == 'planned' and state == 'paused' and redis.call('HGET', KEYS[1], 'by') == 'interrupt'
if not next or ARGV[7] ~= '' and ARGV[7] ~= state and not wasInterrupted then return {state, state} end

-- After a loss no open id may read as never sent, neither at the seal nor when the run continues.
if ARGV[1] == 'cancel' then checkServer(KEYS[1], KEYS[4], ARGV[8], ARGV[9], ARGV[10]) end
local halted = redis.call('HMGET', KEYS[1], 'halt', 'canary')
if halted[1] == 'ledger_lost' then raiseDoubt(KEYS[1], KEYS[4], 'Redis had lost a part of the run') end

redis.call('HSET', KEYS[1], 'state', next, 'reason', ARGV[2], 'by', ARGV[3], 'who', ARGV[4], 'halt', ARGV[5], 'changedAt', now)
stopTime(KEYS[1], now)
if next == 'running' then
  -- The operator who resumes a run has seen why it halted: its rules count from here.
  redis.call('HSET', KEYS[1], 'activeUntil', now, 'settledAtStart', redis.call('HGET', KEYS[1], 'settled') or 0, 'failuresAtStart', failuresOf(KEYS[1]))
  redis.call('HSET', KEYS[1], 'activeAtStart', redis.call('HGET', KEYS[1], 'activeMs') or 0)
  if halted[1] == 'canary' then
    redis.call('HSET', KEYS[1], 'canary', string.match(halted[2], '^%S+ (.*)$') or '', 'failuresAtRung', failuresOf(KEYS[1]))
  end
  -- Nor does a --stop-at stop it that came meanwhile. A new run has not been stopped: it sends nothing after its own.
  local stopAt = state ~= 'planned' and redis.call('HGET', KEYS[1], 'stopAt')
  if stopAt and tonumber(stopAt) <= now then redis.call('HDEL', KEYS[1], 'stopAt') end
  for _, counter in ipairs({${countersLua(rules)}}) do redis.call('HDEL', KEYS[1], counter) end
  redis.call('HSETNX', KEYS[1], 'startedAt', now)
  -- A run whose cells were all settled while it was not running has nothing left to do.
  local counts = redis.call('HMGET', KEYS[1], 'ids', 'settled')
  if counts[1] == counts[2] then next = 'completed' end
end
if next == 'cancelling' then
  -- Unclaimed chunks go back at once; a holder hands its chunk back within a second.
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
${noteAuditLua('KEYS[4]', 'ARGV[6]')}
if next ~= 'completed' and next ~= 'cancelled' then noteChange(KEYS[1], now) end -- the seal notes those
-- No command waits for the end of a run that was not running: the cancelling command reports where its outcomes are.
if next == 'completed' or next == 'cancelled' then
  seal(next, next == 'cancelled' and state ~= 'running', KEYS[1], KEYS[2], KEYS[3], KEYS[4])
end
return {state, next}
`;

/**
 * Changes the rate or the priority of a run that isn't sealed. Repeating it changes nothing more, but adds an audit entry.
 *
 * KEYS  1 run  2 audit
 * ARGV  1 audit entry  then pairs: field, value ('keep' = as it is)
 * returns {state or 'missing', what each field held before, '' for nothing}
 */
export const changeRunLua = `
local run = redis.call('HMGET', KEYS[1], 'state', 'sealed')
local before = {run[1] or 'missing'}
for i = 2, #ARGV, 2 do before[#before + 1] = redis.call('HGET', KEYS[1], ARGV[i]) or '' end
if not run[1] or run[2] then return before end
for i = 2, #ARGV, 2 do
  if ARGV[i + 1] ~= 'keep' then redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1]) end
end
${noteAuditLua('KEYS[2]', 'ARGV[1]')}
return before
`;
