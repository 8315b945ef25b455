import { noteAuditLua, noteLoosenedFunction } from './audit.ts';
import { revisionFunctions } from './changes.lua.ts';

/**
 * `--max-deletes N` lets a run send only the first N ids of its list, in the order of its chunks. The bound is a place, not a counter, so it needs no
 * count of marks, which a crash or a loss of data could falsify, and it costs nothing when ids are marked. `sendable` in the record is that place.
 * `12:100` means all ids of the chunks before 12, and the first 100 ids of chunk 12; '' = all. Chunks beyond it are not enqueued, and a claim says
 * how many ids of its chunk may be marked. The place never moves back over a chunk that was enqueued.
 */

/** Lua: how many ids of a chunk may be sent (nil = all), and how many chunks may be enqueued. */
export const sendableFunctions = `
local function placeOfSendable(sendable)
  local chunk, ids = string.match(sendable or '', '^(%d+):(%d+)$')
  return tonumber(chunk), tonumber(ids)
end

local function sendableIn(sendable, chunk)
  local last, ids = placeOfSendable(sendable)
  if not last or chunk < last then return nil end
  return chunk == last and ids or 0
end

local function sendableChunks(sendable, chunks)
  local last, ids = placeOfSendable(sendable)
  return last and last + math.min(ids, 1) or chunks
end
`;

/** Lua: halts a run once all ids that it may send have an outcome. Needs `haltFunctions`. */
export const spentFunction = `
local function isSpent(runKey, auditKey)
  local run = redis.call('HMGET', runKey, 'settled', 'maxDeletes', 'ids')
  if tonumber(run[1]) < tonumber(run[2]) then return false end
  local left = tonumber(run[3]) - tonumber(run[1])
  halt(runKey, auditKey, 'max_deletes', run[1] .. ' ids have an outcome, as many as --max-deletes allows; ' .. left .. (left == 1 and ' was' or ' were') .. ' not sent')
  return true
end
`;

/**
 * Changes how many ids a run may send. Repeating it changes nothing more.
 *
 * KEYS  1 run  2 open  3 deferred  4 audit
 * ARGV  1 --max-deletes, '' = none  2 `sendable` for it  3 audit entry  4 note for a run of a plan, '' = nothing
 * returns {state or 'missing', 1, or 0 if chunks beyond that place were enqueued, the number of enqueued chunks}; a finalized run stays as it is
 */
export const changeMaxDeletesLua = `${sendableFunctions}${noteLoosenedFunction}${revisionFunctions}
local run = redis.call('HMGET', KEYS[1], 'state', 'finalized', 'next', 'chunks', 'sendable', 'maxDeletes')
if not run[1] or run[2] then return {run[1] or 'missing', 1, 0} end
local enqueued, chunks = tonumber(run[3]), tonumber(run[4])
local before, idsBefore = placeOfSendable(run[5])
local last, ids = placeOfSendable(ARGV[2])
if run[5] == ARGV[2] and run[6] == ARGV[1] then return {run[1], 1, enqueued} end
local isCut = last and enqueued == last + 1 and ids > 0 and not (before == last and idsBefore <= ids)
if enqueued > sendableChunks(ARGV[2], chunks) or isCut then return {run[1], 0, enqueued} end
redis.call('HSET', KEYS[1], 'maxDeletes', ARGV[1], 'sendable', ARGV[2])
-- The rest of a partly sent chunk is due now. If the chunk has a holder, its holder defers the rest.
local isRestDue = before and idsBefore > 0 and enqueued > before and run[5] ~= ARGV[2]
if isRestDue and redis.call('HEXISTS', KEYS[2], before) == 0 then redis.call('ZADD', KEYS[3], 'NX', redis.call('TIME')[1] * 1000, before) end
noteLoosened(KEYS[1], ARGV[4])
noteEdit(KEYS[1])
${noteAuditLua('KEYS[4]', 'ARGV[3]')}
return {run[1], 1, enqueued}
`;
