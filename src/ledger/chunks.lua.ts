import { activeTimeFunctions, finalizeFunction, followClockFunction } from './active-time.lua.ts';
import { cellConstants, headerBytes, marksKept } from './cell.ts';
import { changeFunction } from './changes.lua.ts';
import { checkServerFunction, doubtCellsFunction, doubtFunction } from './doubt.lua.ts';
import { haltFunctions } from './halt-rules.ts';
import { sendableFunctions, spentFunction } from './max-deletes.lua.ts';
import { schemaVersion } from './run.ts';
import { isEarlyFunction } from './start-time.lua.ts';

/**
 * The scripts that move chunks. A chunk is not enqueued yet (its number is `next` or higher), in `open`, in `deferred`, or settled. Each script uses
 * keys of one run and can be repeated: a chunk that was moved already stays in its place. They use the time of Redis, because the clocks of workers
 * differ.
 */

/** A chunk whose ids have all failed before is due half a ms early, which no clock shows. Other chunks are due at whole ms. */
export const retryMark = 0.5;

const timeFunctions = `${activeTimeFunctions}
local function timeOr(given) return given == '' and redisTime() or tonumber(given) end
`;

/** The number of chunks of a run that wait in the queue: enough to keep workers busy, few enough that runs share them. */
const maxUnclaimed = 4;

/**
 * Enqueues due chunks of `deferred`, then new ones, until `open` holds `maxUnclaimed` unclaimed chunks. Before the run's start and outside its window
 * nothing is enqueued. Processes that work on a run enqueue its chunks all the time, so its deleting time is counted here. A run whose time is up is
 * paused.
 *
 * Chunks behind a rung of the canary are enqueued once all chunks before it are settled and the rung has gone well; otherwise the run is halted.
 * Chunks beyond what --max-deletes allows are not enqueued.
 *
 * Chunks whose remaining ids have all failed before would hold back new chunks, so they are enqueued in turn with them: new chunks show whether the
 * target works.
 */
const enqueueFunction = `${timeFunctions}${isEarlyFunction}${followClockFunction}${changeFunction}${haltFunctions}${sendableFunctions}${spentFunction}
local function passesRung(runKey, auditKey)
  local run = redis.call('HMGET', runKey, 'settled', 'expectAbsent', 'maxFailures', 'failuresAtRung', 'ids')
  local settled, failures, gone = tonumber(run[1]), failuresOf(runKey), goneOf(runKey)
  local isNoneDeleted = gone > 0 and gone + failures == settled
  failures = failures - tonumber(run[4] or '0')
  -- A number for the whole run is a share for a part of it.
  local percent, number = string.match(run[3] or '', '^(.*)%%$'), tonumber(run[3] or '')
  local allowed = percent and settled * percent / 100 or number and settled * number / tonumber(run[5]) or 0
  local what = failures > allowed and failures .. ' of the first ' .. settled .. ' ids failed or are unknown'
    or isNoneDeleted and run[2] ~= '1' and 'none of the first ' .. settled .. ' ids was there'
  if not what then return true end
  halt(runKey, auditKey, 'canary', what .. '; no other id was sent, and resume sends the next part')
  return false
end

local function isTimeUp(runKey, auditKey)
  local run = redis.call('HMGET', runKey, 'stopAt', 'maxActiveMs', 'activeMs', 'activeAtStart')
  local active = tonumber(run[3] or '0') - tonumber(run[4] or '0')
  local hasCome = run[1] and redisTime() >= tonumber(run[1])
  if hasCome then redis.call('HDEL', runKey, 'stopAt') end -- only once: whoever resumes the run after that has seen it
  local what = hasCome and 'the moment of --stop-at has come' or run[2] and active >= tonumber(run[2]) and 'it has deleted for as long as --max-duration allows'
  if what then stopByGuard(runKey, auditKey, 'pause', 'paused', 'time_up', what) end
  return what
end

local function enqueue(runKey, open, deferred, auditKey, now)
  followClock(runKey, deferred)
  local run = redis.call('HMGET', runKey, 'state', 'next', 'chunks', 'canary', 'closedUntil', 'sendable', 'enqueuedDeferred', 'startsAt')
  if run[1] ~= 'running' then return {} end
  local isClosed = tonumber(run[5] or '0') > now or isEarly(run[8])
  if not isClosed then countTime(runKey, redisTime()) end
  if isTimeUp(runKey, auditKey) or isClosed then return {} end
  local unclaimed = 0
  for _, epoch in ipairs(redis.call('HVALS', open)) do
    if epoch == '0' then unclaimed = unclaimed + 1 end
  end
  local enqueued, next, last, canary = {}, tonumber(run[2]), tonumber(run[3]), run[4] or ''
  while canary ~= '' do
    local ids, chunks = string.match(canary, '^(%d+):(%d+)')
    if tonumber(redis.call('HGET', runKey, 'settled')) < tonumber(ids) then last = math.min(last, tonumber(chunks)) break end
    if not passesRung(runKey, auditKey) then return {} end
    canary = string.match(canary, '^%S+ (.*)$') or ''
    redis.call('HSET', runKey, 'canary', canary)
  end
  if (run[6] or '') ~= '' then
    if isSpent(runKey, auditKey) then return {} end
    last = math.min(last, sendableChunks(run[6], last))
  end
  local isNewTurn = run[7] == '1'
  while unclaimed + #enqueued < ${maxUnclaimed} do
    local first = redis.call('ZRANGEBYSCORE', deferred, '-inf', now, 'WITHSCORES', 'LIMIT', 0, 1)
    local due, isRetry = first[1], first[1] and tonumber(first[2]) % 1 == ${retryMark}
    if due and not (isRetry and isNewTurn and next < last) then
      isNewTurn = isNewTurn or isRetry
      redis.call('HSET', open, due, 0)
      redis.call('ZREM', deferred, due)
      enqueued[#enqueued + 1] = tonumber(due)
    elseif next < last then
      isNewTurn = false
      redis.call('HSET', open, next, 0)
      enqueued[#enqueued + 1] = next
      next = next + 1
      redis.call('HSET', runKey, 'next', next)
    else
      break
    end
  end
  if isNewTurn ~= (run[7] == '1') then redis.call('HSET', runKey, 'enqueuedDeferred', isNewTurn and '1' or '') end
  return enqueued
end
`;

/**
 * KEYS  1 run  2 open  3 deferred  4 audit
 * ARGV  1 now in ms, '' = Redis TIME
 * returns the numbers of the chunks that were enqueued now
 */
export const enqueueLua = `${enqueueFunction}
return enqueue(KEYS[1], KEYS[2], KEYS[3], KEYS[4], timeOr(ARGV[1]))
`;

/**
 * Takes an open chunk under a new epoch; its former holder gets no more marks. The claim leaves one unclaimed chunk less, so it enqueues as well. If
 * Redis may have lost part of the run, the open cells carry doubt from now on; see doubt.lua.ts.
 *
 * KEYS  1 run  2 open  3 deferred  4 ledger chunk  5 manifest chunk  6 audit
 * ARGV  1 chunk  2 now in ms, '' = Redis TIME  3… facts about the Redis process
 * returns {state, epoch, ledger chunk, manifest chunk, enqueued, the run's `onStatus`, process, its history, reason for new doubt or '', now,
 *   how many ids of the chunk may be marked (-1 = all)}; epoch 0: nothing to do here (not open, or the run isn't running or has not started).
 *   State 'missing': Redis has lost the run; 'broken': Redis has lost this chunk of it;
 *   'other_version': another version has written the run, in its own form
 */
export const claimLua = `${checkServerFunction}${doubtCellsFunction}${enqueueFunction}
local run = redis.call('HMGET', KEYS[1], 'state', 'onStatus', 'schema', 'sendable', 'startsAt', 'misfit')
local state = run[1]
if not state then return {'missing', 0} end
if run[3] ~= '${schemaVersion}' then return {'other_version', 0} end
local former = redis.call('HGET', KEYS[2], ARGV[1])
if state ~= 'running' or not former or isEarly(run[5]) then return {state, 0} end
local chunk = redis.call('MGET', KEYS[4], KEYS[5])
if not chunk[1] or not chunk[2] then return {'broken', 0} end
local process, history, doubt = checkServer(KEYS[1], KEYS[6], ARGV[3], ARGV[4], ARGV[5])
local cells = chunk[1]
if redis.call('HEXISTS', KEYS[1], 'doubtSince') == 1 then cells = doubtCells(KEYS[4], cells) end
if run[6] then redis.call('HDEL', KEYS[1], 'misfit') end
local epoch, now = redis.call('HINCRBY', KEYS[1], 'epoch', 1), timeOr(ARGV[2])
redis.call('HSET', KEYS[2], ARGV[1], epoch)
if former ~= '0' then redis.call('HINCRBY', KEYS[1], 'takeovers', 1) end
local enqueued, sendable = enqueue(KEYS[1], KEYS[2], KEYS[3], KEYS[6], now), sendableIn(run[4], tonumber(ARGV[1])) or -1
return {state, epoch, cells, chunk[2], enqueued, run[2] or '', process, history, doubt, now, sendable, former ~= '0' and 1 or 0}
`;

/**
 * Returns a chunk: settled, or deferred until it is due. The last returned chunk turns `cancelling` into `cancelled`.
 *
 * KEYS  1 run  2 open  3 deferred  4 ledger chunk
 * ARGV  1 chunk  2 epoch  3 now in ms, '' = Redis TIME: the pass has ended  4 in how many ms it is due, or '' if every cell is settled
 *       5 1 = marks of open cells are reset: no request is in flight, and of open cells of former holders only the doubt counts
 *       6 how many ids of the chunk might be marked, '' = all; argument 4 is not about the other ids, which are due once they may be sent
 *       7 1 = all remaining ids have failed before
 * returns state, 'stale' if another holder has the chunk, or 'missing' or 'broken' as the claim
 */
export const returnChunkLua = `${finalizeFunction}${timeFunctions}${cellConstants}${sendableFunctions}
local state = redis.call('HGET', KEYS[1], 'state')
if not state then return 'missing' end
if redis.call('HGET', KEYS[2], ARGV[1]) ~= ARGV[2] then return 'stale' end
if redis.call('EXISTS', KEYS[4]) == 0 then return 'broken' end
local now, ended = timeOr(ARGV[3]), ''
for place = 5, 0, -1 do ended = ended .. string.char(math.floor(now / 256 ^ place) % 256) end
redis.call('SETRANGE', KEYS[4], 0, ended)
if ARGV[5] == '1' then
  local bytes, cells = redis.call('GETRANGE', KEYS[4], ${headerBytes}, -1), {}
  for at = 1, #bytes, 2 do
    local high, low = string.byte(bytes, at, at + 1)
    local cell = high * 256 + low
    local marks = math.floor(cell / markStep) % marksSize
    if cell < settledFrom and marks % 2 == 0 and marks > ${marksKept} then cell = cell - markStep * (marks - ${marksKept}) end
    cells[#cells + 1] = string.char(math.floor(cell / 256), cell % 256)
  end
  redis.call('SETRANGE', KEYS[4], ${headerBytes}, table.concat(cells))
end
local dueIn = ARGV[4]
if dueIn == '' and ARGV[6] ~= '' and sendableIn(redis.call('HGET', KEYS[1], 'sendable'), tonumber(ARGV[1])) ~= tonumber(ARGV[6]) then dueIn = 0 end
if dueIn ~= '' and state ~= 'completed' then redis.call('ZADD', KEYS[3], now + dueIn - (ARGV[7] == '1' and ${retryMark} or 0), ARGV[1]) end
redis.call('HDEL', KEYS[2], ARGV[1])
if state == 'cancelling' and redis.call('HLEN', KEYS[2]) == 0 then
  finalize('cancelled', false, KEYS[1], KEYS[3])
  return 'cancelled'
end
return state
`;

/** The silence after which the holder of a cancelled run's chunk is presumed dead, in ms. */
const holderTimeoutMs = 15_000;

/**
 * Records that a process is alive and holds chunks of a run. Only a cancellation needs that, so nothing is written in another state.
 *
 * KEYS  1 run  2 holders
 * ARGV  1 process  2 the longest time that one of its requests can take, in ms
 */
export const keepaliveLua = `${finalizeFunction}
if redis.call('HGET', KEYS[1], 'state') ~= 'cancelling' then return end
redis.call('ZADD', KEYS[2], redisTime(), ARGV[1] .. ' ' .. ARGV[2])
`;

/**
 * Ends a cancelled run even if dead holders have chunks of it. A live holder has the time of its longest request to return its chunk.
 *
 * KEYS  1 run  2 open  3 deferred  4 holders
 * returns state
 */
export const reclaimLua = `${finalizeFunction}${followClockFunction}
followClock(KEYS[1], KEYS[3])
local run = redis.call('HMGET', KEYS[1], 'state', 'changedAt')
if run[1] ~= 'cancelling' then return run[1] or 'missing' end
local now = redisTime()
local chunks = redis.call('HKEYS', KEYS[2])
if #chunks > 0 then
  local passed = now - tonumber(run[2] or '0')
  if passed <= ${holderTimeoutMs} then return 'cancelling' end
  -- Later keepalives were written by a clock that was ahead; a live holder writes a new one every second.
  for _, holder in ipairs(redis.call('ZRANGEBYSCORE', KEYS[4], now - ${holderTimeoutMs}, now + 1000)) do
    if passed <= tonumber(string.match(holder, '%d+$')) + ${holderTimeoutMs} then return 'cancelling' end
  end
end
for _, chunk in ipairs(chunks) do redis.call('ZADD', KEYS[3], now, chunk) end
redis.call('DEL', KEYS[2])
finalize('cancelled', false, KEYS[1], KEYS[3], KEYS[4])
return 'cancelled'
`;

/**
 * Whether chunks are orphaned: all chunks are enqueued (or all up to a rung of the canary, or all that --max-deletes allows), none is open or
 * deferred, and yet not all their ids are settled.
 *
 * KEYS  1 run  2 open  3 deferred
 * returns 1 or 0
 */
export const hasOrphansLua = `${sendableFunctions}
local run = redis.call('HMGET', KEYS[1], 'state', 'next', 'chunks', 'ids', 'settled', 'canary', 'sendable', 'maxDeletes')
if run[1] ~= 'running' then return 0 end
local rungIds, rungChunks = string.match(run[6] or '', '^(%d+):(%d+)')
local chunks, ids = tonumber(rungChunks or run[3]), tonumber(rungIds or run[4])
if (run[7] or '') ~= '' then chunks, ids = math.min(chunks, sendableChunks(run[7], chunks)), math.min(ids, tonumber(run[8])) end
if tonumber(run[2]) < chunks or tonumber(run[5]) >= ids then return 0 end
return redis.call('EXISTS', KEYS[2]) + redis.call('EXISTS', KEYS[3]) == 0 and 1 or 0
`;

/**
 * Makes orphaned chunks due again, in doubt. Chunks that are open already stay as they are.
 *
 * KEYS  1 run  2 open  3 deferred  4 audit
 * ARGV  1 now in ms, '' = Redis TIME  2 reason for doubt  3… chunks
 * returns state or 'missing'
 */
export const recoverLua = `${doubtFunction}${timeFunctions}
local state = redis.call('HGET', KEYS[1], 'state')
if state ~= 'running' then return state or 'missing' end
if redis.call('HGET', KEYS[1], 'doubt') ~= ARGV[2] then raiseDoubt(KEYS[1], KEYS[4], ARGV[2]) end
for i = 3, #ARGV do
  if redis.call('HEXISTS', KEYS[2], ARGV[i]) == 0 then redis.call('ZADD', KEYS[3], 'NX', timeOr(ARGV[1]), ARGV[i]) end
end
return state
`;
