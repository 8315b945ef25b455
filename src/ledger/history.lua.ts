import { idOutcomes } from '../model/outcome.ts';
import { activeTimeFunctions, longestSilenceMs } from './active-time.lua.ts';

/** How many samples of a run are kept. Once there are as many, every second one goes and the time between two doubles. */
export const samplesMax = 144;

/** How many waits and rates are kept, and how many bytes of a reason. With the samples that is less than 64 KB. */
export const eventsMax = 50;
export const reasonBytes = 100;

/** The time between two samples at first, in ms. */
export const firstSampleMs = 1_000;

const ofRun = ['takeovers', ...idOutcomes] as const;
const ofMeasures = ['requests', 'refused', 'workMs', 'heldMs', 'allowed', 'limitedMs', 'busyMs'] as const;

/** The sums at the front of a sample, in this order, six bytes each. `at`: when it was taken; `activeMs`: the deleting time until then. */
export const sampleSums = ['at', 'activeMs', ...ofRun, ...ofMeasures] as const;
export const sumBytes = 6;

/** Behind them the latencies, four bytes a bucket: each has four buckets of the measures, so neighbours differ by 41 %. */
export const bucketsOfOne = 4;
export const latencyBuckets = 40;
export const latencyBytes = 4;

const luaList = (names: readonly string[]) => names.map((name) => `'${name}'`).join(', ');

// A sample holds sums since the start of the run. So dropping one loses nothing but a point in time, and what a killed process has reported
// is in the next one.
const sampleFunction = `${activeTimeFunctions}
local function packSum(n) return struct.pack('>I${sumBytes}', math.max(0, tonumber(n or 0) or 0)) end

local function takeSample(runKey, measuresKey, now)
  local run = redis.call('HMGET', runKey, 'activeMs', 'activeUntil', ${luaList(ofRun)})
  local sinceMs = now - tonumber(run[2] or now)
  if sinceMs < 0 or sinceMs > ${longestSilenceMs} then sinceMs = 0 end
  local parts, sums, latencies = {packSum(now), packSum(tonumber(run[1] or 0) + sinceMs)}, {}, {}
  for i = 3, ${2 + ofRun.length} do parts[#parts + 1] = packSum(run[i] or 0) end
  local measures = redis.call('HGETALL', measuresKey)
  for i = 1, #measures, 2 do
    local bucket = string.match(measures[i], '^l(%d+)$')
    if bucket then
      local to = math.min(${latencyBuckets - 1}, math.ceil(bucket / ${bucketsOfOne}))
      latencies[to] = (latencies[to] or 0) + measures[i + 1]
    else
      sums[measures[i]] = measures[i + 1]
    end
  end
  for _, name in ipairs({${luaList(ofMeasures)}}) do parts[#parts + 1] = packSum(sums[name]) end
  for bucket = 0, ${latencyBuckets - 1} do
    parts[#parts + 1] = struct.pack('>I${latencyBytes}', math.min(latencies[bucket] or 0, 4294967295))
  end
  return table.concat(parts)
end
`;

const shortestMs = 1_000; // between the begin of a wait and its end: processes see both a little apart
const rateFactor = 1.5;
const shortWaitMs = 10_000;

// A server that throttles may cause a wait every few seconds: the end of an outage long ago tells more. So the shortest wait
// goes, both its ends, or the oldest rate, of whichever there are more; a long wait only where there is no rate.
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
 * Adds a sample if one is due, and an event if sending was stopped or went on, or the rate is another one. Every process that works on the
 * run calls it about once a second; who comes first writes. Repeating it changes nothing.
 *
 * KEYS  1 run  2 measures  3 history  4 historyEvents
 * ARGV  1 the rate that is allowed, '' = none is known  2 why nothing may be sent, '' = requests may be sent
 */
export const noteHistoryLua = `${sampleFunction}${leastTellingFunction}
local left = redis.call('PTTL', KEYS[1])
if left == -2 then return end
local now = redisTime()
local known = redis.call('HMGET', KEYS[2], 'sampledAt', 'sampleMs', 'isHeld', 'heldAt', 'rateNoted')

local function note(event, reason)
  if redis.call('RPUSH', KEYS[4], cjson.encode({at = now, event = event, reason = reason})) <= ${eventsMax} then return end
  for _, i in ipairs(leastTelling(redis.call('LRANGE', KEYS[4], 0, -1))) do redis.call('LSET', KEYS[4], i - 1, '') end
  redis.call('LREM', KEYS[4], 0, '')
end

local isHeld = ARGV[2] ~= ''
if isHeld ~= (known[3] == '1') and now - tonumber(known[4] or 0) >= ${shortestMs} then
  redis.call('HSET', KEYS[2], 'isHeld', isHeld and 1 or 0, 'heldAt', now)
  note(isHeld and 'waiting' or 'resumed', ARGV[2])
end
local rate, before = tonumber(ARGV[1]), tonumber(known[5] or 0)
if rate and rate > 0 and not isHeld and (rate >= before * ${rateFactor} or rate * ${rateFactor} <= before) then
  redis.call('HSET', KEYS[2], 'rateNoted', rate)
  note('rate', ARGV[1])
end

local sampledAt, everyMs = tonumber(known[1] or 0), tonumber(known[2] or ${firstSampleMs})
if now < sampledAt or now - sampledAt >= everyMs then
  redis.call('HSET', KEYS[2], 'sampledAt', now)
  if redis.call('RPUSH', KEYS[3], takeSample(KEYS[1], KEYS[2], now)) >= ${samplesMax} then
    local all, kept = redis.call('LRANGE', KEYS[3], 0, -1), {}
    for i = 2, #all, 2 do kept[#kept + 1] = all[i] end
    redis.call('DEL', KEYS[3])
    redis.call('RPUSH', KEYS[3], unpack(kept))
    redis.call('HSET', KEYS[2], 'sampleMs', 2 * everyMs)
  end
end
if left >= 0 then
  for i = 2, 4 do redis.call('PEXPIRE', KEYS[i], left) end
end
`;

/**
 * Only reads.
 *
 * KEYS  1 run  2 measures  3 history
 * returns the samples, the last of them of this moment
 */
export const readHistoryLua = `${sampleFunction}
local samples = redis.call('LRANGE', KEYS[3], 0, -1)
samples[#samples + 1] = takeSample(KEYS[1], KEYS[2], redisTime())
return samples
`;
