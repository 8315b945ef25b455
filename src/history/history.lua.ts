import { activeTimeFunctions } from '../ledger/active-time.lua.ts';
import { sentOutcomes } from '../model/outcome.ts';

/** The number of bins that are kept for a run. When there are more, each two become one, and the width of a bin doubles. */
export const binsMax = 144;

/** The number of waits and rates that are kept, and the number of bytes of a reason. Together with the bins, this is less than 64 KB. */
export const eventsMax = 50;
export const reasonBytes = 100;

/** The sums of a bin that processes record. `allowed`: thousandths of a request that the rate would have allowed in `limitedMs`. */
export const sliceSums = [
  'requests',
  'refused',
  'workMs',
  'heldMs',
  'allowed',
  'limitedMs',
  'busyMs',
  ...sentOutcomes,
] as const;

/** The sums at the front of a bin, in this order, six bytes each. */
export const binSums = [...sliceSums, 'takeovers'] as const;
export const sumBytes = 6;

/** After the sums come the latencies, four bytes per bucket. Each holds four buckets of the measures, so neighbours differ by 41 %. */
export const bucketsOfOne = 4;
export const latencyBuckets = 40;
export const latencyBytes = 4;

const binLength = binSums.length + latencyBuckets;
const format = `>${`I${sumBytes}`.repeat(binSums.length)}${`I${latencyBytes}`.repeat(latencyBuckets)}`;

const binFunctions = `
local function decodeBin(text)
  local bin = text and {struct.unpack('${format}', text)} or {}
  for i = 1, ${binLength} do bin[i] = bin[i] or 0 end
  return bin
end

local function encodeBin(bin)
  for i = 1, ${binLength} do
    bin[i] = math.max(0, math.min(bin[i], i <= ${binSums.length} and ${2 ** (8 * sumBytes) - 1} or ${2 ** (8 * latencyBytes) - 1}))
  end
  return struct.pack('${format}', unpack(bin, 1, ${binLength}))
end

local function addTo(bin, more)
  for i = 1, ${binLength} do bin[i] = bin[i] + (more[i] or 0) end
end

local function binStart(second, width) return math.floor(second / width) * width end

local function widenBins(historyKey, width)
  local bins, all = {}, redis.call('HGETALL', historyKey)
  for i = 1, #all, 2 do
    local start = binStart(tonumber(all[i]), width)
    bins[start] = bins[start] or decodeBin(nil)
    addTo(bins[start], decodeBin(all[i + 1]))
  end
  redis.call('DEL', historyKey)
  for start, bin in pairs(bins) do redis.call('HSET', historyKey, start, encodeBin(bin)) end
end
`;

const minMs = 1_000; // between the start of a wait and its end: processes notice them at slightly different times
const rateFactor = 1.5;
const shortWaitMs = 10_000;

// A server that throttles may cause a wait every few seconds, and an outage long ago says more. So the shortest wait is dropped (both its ends), or
// the oldest rate, whichever kind has more entries. A long wait is dropped only if there is no rate.
const leastTellingFunction = `
local function leastTelling(all)
  local began, rate, rates, wait, waitMs = nil, nil, 0, nil, math.huge
  for i, text in ipairs(all) do
    local one = cjson.decode(text)
    if one.event == 'rate' then
      rate, rates = rate or i, rates + 1
    elseif one.event == 'waiting' then
      began = {i, one.at}
    elseif began then
      if one.at - began[2] < waitMs then wait, waitMs = {began[1], i}, one.at - began[2] end
      began = nil
    end
  end
  if wait and (not rate or (waitMs < ${shortWaitMs} and 2 * rates <= #all)) then return wait end
  return {rate or 1}
end
`;

/**
 * Adds the work of a process in some seconds to the bins of the run. Adds an event if sending stopped or resumed, or if the rate changed. Every
 * process that works on the run calls it about once a second. Repeating it would count twice.
 *
 * KEYS  1 run  2 measures  3 history  4 historyEvents
 * ARGV  1 the rate that is allowed, '' = none is known  2 why sending is not allowed, '' = it is allowed
 *       3 JSON: for each second a list of the second (since 1970, by the clock of Redis), its sums and its latencies
 */
export const noteHistoryLua = `${activeTimeFunctions}${binFunctions}${leastTellingFunction}
local left = redis.call('PTTL', KEYS[1])
if left == -2 then return end
local now = redisTime()
local known = redis.call('HMGET', KEYS[2], 'binSeconds', 'takeoversNoted', 'isHeld', 'heldAt', 'rateNoted')

local function note(event, reason)
  if redis.call('RPUSH', KEYS[4], cjson.encode({at = now, event = event, reason = reason})) <= ${eventsMax} then return end
  for _, i in ipairs(leastTelling(redis.call('LRANGE', KEYS[4], 0, -1))) do redis.call('LSET', KEYS[4], i - 1, '') end
  redis.call('LREM', KEYS[4], 0, '')
end

local isHeld = ARGV[2] ~= ''
if isHeld ~= (known[3] == '1') and now - tonumber(known[4] or 0) >= ${minMs} then
  redis.call('HSET', KEYS[2], 'isHeld', isHeld and 1 or 0, 'heldAt', now)
  note(isHeld and 'waiting' or 'resumed', ARGV[2])
end
local rate, before = tonumber(ARGV[1]), tonumber(known[5] or 0)
if rate and rate > 0 and not isHeld and (rate >= before * ${rateFactor} or rate * ${rateFactor} <= before) then
  redis.call('HSET', KEYS[2], 'rateNoted', rate)
  note('rate', ARGV[1])
end

local run = redis.call('HMGET', KEYS[1], 'takeovers', 'startedAt', 'endedAt')
local first = math.floor(tonumber(run[2] or 0) / 1000)
local last = math.floor(math.min(now, tonumber(run[3]) or now) / 1000)
local width, bins = tonumber(known[1] or 1), {}
local function binAt(second)
  local start = binStart(math.max(first, math.min(second, last)), width)
  bins[start] = bins[start] or decodeBin(redis.call('HGET', KEYS[3], start))
  return bins[start]
end
for _, slice in ipairs(cjson.decode(ARGV[3])) do addTo(binAt(table.remove(slice, 1)), slice) end
local takeovers = tonumber(run[1] or 0) - tonumber(known[2] or 0)
if takeovers > 0 then
  redis.call('HSET', KEYS[2], 'takeoversNoted', run[1])
  addTo(binAt(last), {[${binSums.indexOf('takeovers') + 1}] = takeovers})
end
for start, bin in pairs(bins) do redis.call('HSET', KEYS[3], start, encodeBin(bin)) end
while redis.call('HLEN', KEYS[3]) > ${binsMax} do
  width = 2 * width
  redis.call('HSET', KEYS[2], 'binSeconds', width)
  widenBins(KEYS[3], width)
end
if left >= 0 then
  for i = 2, 4 do redis.call('PEXPIRE', KEYS[i], left) end
end
`;

/** The sums of a run that its bins are compared with. */
export const runTotals = [...sentOutcomes, 'takeovers'] as const;

/**
 * Only reads.
 *
 * KEYS  1 run  2 measures  3 history
 * returns now in ms, the width of a bin in seconds, the totals of the run; then for each bin, in any order, its second and its bytes
 */
export const readHistoryLua = `${activeTimeFunctions}
local found = {redisTime(), tonumber(redis.call('HGET', KEYS[2], 'binSeconds') or 1)}
for _, total in ipairs(redis.call('HMGET', KEYS[1], ${runTotals.map((name) => `'${name}'`).join(', ')})) do
  found[#found + 1] = tonumber(total or 0)
end
for _, part in ipairs(redis.call('HGETALL', KEYS[3])) do found[#found + 1] = part end
return found
`;
