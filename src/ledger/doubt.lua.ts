import type { ServerIdentity } from '../redis/server-identity.ts';
import { noteAuditLua } from './audit.ts';
import { doubt, headerBytes } from './cell.ts';
import { revisionFunctions } from './changes.lua.ts';

/*
 * Runs in doubt. Redis can lose its newest acknowledged writes: after a cut append-only file, from an old snapshot, or on a replica that was
 * behind. If another Redis process holds a run, or the same process after it was a replica, claims, marks and results may be lost. Any
 * open id may have been sent. From then on, permanently,
 * - each cell that is claimed carries doubt, and at finalization no open cell reads as never sent;
 * - epochs continue from the clock, so that an epoch that Redis has lost is never given out again;
 * - a former holder has to check that it still holds its chunk (`stillHolds` in ledger.ts): the claim of a later holder may be lost, and
 *   with it the record of that holder's requests. What a holder knows about its own requests stays true.
 */

/** Three arguments of a script: the Redis process, whether it is durable (1, 0, '' = unknown), and its ancestors. */
export function serverIdentityArguments({ process, isDurable, ancestors }: ServerIdentity): string[] {
  return [process, isDurable === null ? '' : isDurable ? '1' : '0', ancestors.join(' ')];
}

/** Lua: puts the run in doubt from now on. */
export const doubtFunction = `
local function raiseDoubt(runKey, auditKey, reason)
  local time = redis.call('TIME')
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  local epoch = tonumber(redis.call('HGET', runKey, 'epoch') or '0')
  redis.call('HSET', runKey, 'epoch', math.max(epoch, now), 'doubt', reason)
  redis.call('HSETNX', runKey, 'doubtSince', now)
  local entry = cjson.encode({at = now, action = 'doubt', by = 'guard', who = '', reason = reason})
  ${noteAuditLua('auditKey', 'entry')}
end
`;

/**
 * Lua: returns the Redis process that runs this script, and the history that it took over in its last promotion (`master_replid2`), '' = none. The
 * script itself calls INFO, so that both belong to the process that runs it.
 */
const processFunction = `
local function thisProcess()
  local history = string.match(redis.call('INFO', 'replication'), 'master_replid2:(%x+)') or ''
  if string.match(history, '^0*$') then history = '' end
  return string.match(redis.call('INFO', 'server'), 'run_id:(%x+)'), history
end
`;

export const otherCanary = 'other_canary';

/**
 * Writes a record that doesn't exist yet, with the Redis process that holds it. In a run that is being prepared, it replaces the fields of the
 * producer: a run belongs to the producer that took it over last.
 *
 * KEYS  1 run
 * ARGV  1… facts about the Redis process  4 `canaryOf`  5 number of fields that may be missing  6… those fields
 *       then the number of arguments for the fields of the producer, those fields and values, and the other fields and values
 * returns the state it had before, '' for none, or `otherCanary`: its chunks have other sizes, so nothing can replace them
 */
export const makeRecordLua = `${processFunction}${revisionFunctions}
local state = redis.call('HGET', KEYS[1], 'state')
local first = 7 + tonumber(ARGV[5])
if state == 'preparing' then
  if redis.call('HGET', KEYS[1], 'canaryOf') ~= ARGV[4] then return '${otherCanary}' end
  redis.call('HDEL', KEYS[1], unpack(ARGV, 6, first - 2))
  redis.call('HSET', KEYS[1], unpack(ARGV, first, first + tonumber(ARGV[first - 1]) - 1))
  noteEdit(KEYS[1])
end
if state then return state end
local me, history = thisProcess()
redis.call('HSET', KEYS[1], 'server', me, 'serverHistory', history, 'serverDurable', ARGV[1] == me and ARGV[2] or '', unpack(ARGV, first))
return ''
`;

const reason = 'Redis was restarted or replaced: what it acknowledged last may be lost';

/**
 * Lua: compares the Redis process that answers with the process recorded in the run, and raises doubt if something may have been lost in between. The
 * caller's arguments count only if they are about the process that answers. A process that was promoted since has another history. A process that
 * merely forgets its history, because its last replica has gone, has lost nothing. Returns that process, its history, and the reason for new doubt or
 * ''.
 */
export const checkServerFunction = `${processFunction}${doubtFunction}
local function checkServer(runKey, auditKey, process, durable, ancestors)
  local me, history = thisProcess()
  if process ~= me then durable, ancestors = '', '' end
  local recorded = redis.call('HMGET', runKey, 'server', 'serverDurable', 'serverHistory')
  local before = recorded[1] or ''
  local wasPromoted = before == me and history ~= '' and history ~= recorded[3]
  if before == me and not wasPromoted then
    if durable ~= '' and durable ~= recorded[2] then redis.call('HSET', runKey, 'serverDurable', durable) end
    return me, history, ''
  end
  local hasAll = durable == '1' and recorded[2] == '1' or before ~= '' and string.find(ancestors, before, 1, true)
  redis.call('HSET', runKey, 'server', me, 'serverHistory', history, 'serverDurable', durable)
  if hasAll and not wasPromoted then return me, history, '' end
  raiseDoubt(runKey, auditKey, '${reason}')
  return me, history, '${reason}'
end
`;

/** Lua: sets doubt in the open cells of a ledger chunk, and returns the new bytes of the chunk. */
export const doubtCellsFunction = `
local function doubtCells(key, bytes)
  local byte, char = string.byte, string.char
  local cells, changed = {}, false
  for at = ${headerBytes + 1}, #bytes, 2 do
    local high, low = byte(bytes, at, at + 1)
    if high < ${doubt / 256} then
      high = high + ${doubt / 256}
      changed = true
    end
    cells[#cells + 1] = char(high, low)
  end
  if not changed then return bytes end
  local doubtful = table.concat(cells)
  redis.call('SETRANGE', key, ${headerBytes}, doubtful)
  return string.sub(bytes, 1, ${headerBytes}) .. doubtful
end
`;
