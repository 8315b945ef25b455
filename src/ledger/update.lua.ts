import { finalizeFunction } from './active-time.lua.ts';
import { cellConstants, headerBytes, timePlaceLua, writeTimesFunction } from './cell.ts';
import { failuresAfter, haltFunctions, isUnexpectedLua } from './halt-rules.ts';
import { isEarlyFunction } from './start-time.lua.ts';
import { unexpected } from './thresholds.ts';

/**
 * The ledger update: merges results into their cells, then marks the next batch before its requests are sent. Running it twice with the same
 * arguments is harmless: the merge is `max`, and a second mark only adds doubt.
 *
 * KEYS  1 ledger chunk  2 run  3 open  4 audit
 * ARGV  1 chunk  2 epoch  3 results, 4 bytes each (index, cell)  4 indexes to mark, 2 bytes each
 * returns {state, cells, places of results whose ids were settled before, from 0}
 *   cells: 2 bytes for each index of ARGV 4, in that order: its cell now. Settled = another holder settled it first. Empty if the run isn't
 *   running or doesn't start yet, or another holder has the chunk: then the state is 'stale'. State 'missing' or 'broken': as in claimLua
 */
export const updateLua = `${finalizeFunction}${isEarlyFunction}${haltFunctions}${writeTimesFunction}${cellConstants}
local header = ${headerBytes}
local byte, char = string.byte, string.char
local results, wanted = ARGV[3], ARGV[4]

-- The touched span of the chunk is read once and written once.
local low, high = 65535, -1
local function touch(list, size)
  for at = 1, #list, size do
    local a, b = byte(list, at, at + 1)
    local i = a * 256 + b
    if i < low then low = i end
    if i > high then high = i end
  end
end
touch(results, 4)
touch(wanted, 2)
local run = redis.call('HMGET', KEYS[2], 'state', 'ids', 'settled', 'finalized', 'startsAt')
local state = run[1]
if not state then return {'missing', ''} end
local isHolder = redis.call('HGET', KEYS[3], ARGV[1]) == ARGV[2]
if high < 0 then return {isHolder and state or 'stale', ''} end

local from, to = header + 2 * low, header + 2 * high + 1
local span = redis.call('GETRANGE', KEYS[1], from, to)
if #span ~= to - from + 1 then return {'broken', ''} end
local cells = {}
for i = low, high do
  local a, b = byte(span, 2 * (i - low) + 1, 2 * (i - low) + 2)
  cells[i] = a * 256 + b
end

-- 1. Merge. A finalized run only counts late results.
local change, attempts, settled, changed, late = {}, 0, 0, false, 0 -- change: by rank
for rank = 1, #outcomes do change[rank] = 0 end
local found = 0 -- ids with an unexpected answer
local timed, isAnyTimed = {}, false -- places of times
local settledBefore = {}
for at = 1, #results, 4 do
  local a, b, c, d = byte(results, at, at + 3)
  local i, new = a * 256 + b, c * 256 + d
  local old = cells[i]
  if old >= settledFrom then settledBefore[#settledBefore + 1] = (at - 1) / 4 end
  -- A former holder cannot be sure: the next holder may have sent a request for the id since. So its outcome becomes the outcome in doubt. Nor does
  -- it know whether a request is in flight: marks may have been reset since (see returnChunkLua). Of its open cells only doubt counts.
  if not isHolder then
    if new < settledFrom then
      new = new >= doubt and old < doubt and old + doubt or old
    else
      local rank = math.floor(new / rankStep)
      new = new + (inDoubt[rank] - rank) * rankStep
    end
  end
  if run[4] then
    late = late + 1
  elseif new > old then
    local rank, oldRank = math.floor(new / rankStep), math.floor(old / rankStep)
    local sent = rank > 0 and math.floor(new / attemptsStep) % attemptsSize or new % attemptsSize
    local sentBefore = oldRank > 0 and math.floor(old / attemptsStep) % attemptsSize or old % attemptsSize
    attempts = attempts + sent - sentBefore
    if oldRank > 0 then
      change[oldRank] = change[oldRank] - 1
    elseif rank > 0 then
      settled = settled + 1
    end
    if rank > 0 then
      change[rank] = change[rank] + 1
      timed[${timePlaceLua('i', 'sent')}] = true
      isAnyTimed = true
      local code = new % attemptsStep
      if oldRank == 0 and (${isUnexpectedLua('rank', 'code')}) then found = found + 1 end
    end
    cells[i] = new
    changed = true
  end
end
for rank, outcome in ipairs(outcomes) do
  if change[rank] ~= 0 then redis.call('HINCRBY', KEYS[2], outcome, change[rank]) end
end
if attempts ~= 0 then redis.call('HINCRBY', KEYS[2], 'attempts', attempts) end
if late > 0 then redis.call('HINCRBY', KEYS[2], 'late', late) end

-- 2. Finalize the run with its last id, or halt it. All results pass here, so the limits count over all processes.
if settled > 0 then
  local total = redis.call('HINCRBY', KEYS[2], 'settled', settled)
  if total == tonumber(run[2]) then
    state = 'completed'
    redis.call('HSET', KEYS[2], 'reason', '')
    finalize(state, false, KEYS[2], KEYS[3], KEYS[4])
  end
  if found > 0 then
    local n = redis.call('HINCRBY', KEYS[2], 'unexpected', found)
    if n >= ${unexpected.count} and state == 'running' then
      state = 'halted'
      halt(KEYS[2], KEYS[4], '${unexpected.halt}', (string.gsub(${JSON.stringify(unexpected.reason)}, '{count}', n)))
    end
  end
  local kept = redis.call('HMGET', KEYS[2], 'settledAtStart', 'maxFailures')
  local since, limit = total - tonumber(kept[1] or '0'), kept[2] or ''
  -- The operator's limit for failures of any kind.
  if limit ~= '' and state == 'running' then
    local n, percent = failuresSinceStart(KEYS[2]), tonumber(string.match(limit, '^(.*)%%$'))
    if percent and since >= ${failuresAfter} and n * 100 > percent * since or not percent and n > (tonumber(limit) or math.huge) then
      state = 'halted'
      halt(KEYS[2], KEYS[4], 'max_failures', n .. ' of ' .. since .. ' ids failed or are unknown, --max-failures is ' .. limit)
    end
  end
end

-- 3. Mark, if this holder still holds the chunk, and the run is running and has started.
local answer, marked = {}, 0
if state == 'running' and isHolder and not isEarly(run[5]) then
  for at = 1, #wanted, 2 do
    local a, b = byte(wanted, at, at + 1)
    local i = a * 256 + b
    local cell = cells[i]
    if cell < settledFrom then
      local marks = math.floor(cell / markStep) % marksSize
      if marks % 2 == 1 then
        if cell < doubt then cell = cell + doubt end
      else
        cell = cell + markStep
        if marks + 2 == marksSize and cell < doubt then cell = cell + doubt end
      end
      cells[i] = cell
      marked = marked + 1
    end
    answer[#answer + 1] = char(math.floor(cell / 256), cell % 256)
  end
end

-- 4. Write.
if changed or marked > 0 then
  local out = {}
  for i = low, high do
    local cell = cells[i]
    out[i - low + 1] = char(math.floor(cell / 256), cell % 256)
  end
  redis.call('SETRANGE', KEYS[1], from, table.concat(out))
end
if isAnyTimed then writeTimes(KEYS[1], timed) end
return {isHolder and state or 'stale', table.concat(answer), settledBefore}
`;
