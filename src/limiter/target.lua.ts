import { leaseFunction } from './lease.lua.ts';

/** How long the --rate of a dead process still limits the others, in ms: until then it can be restarted without a change of the rate. */
const ceilingLivesMs = 60_000;

/**
 * The call of a process to the limiter of its target, ten times a second, or once while it has nothing to send: reports answers, and leases the
 * next permits. The state is one hash; the circuit breaker is part of it. The first call when an update of the estimate is due gets the sums
 * since the last one instead of permits, writes the new estimate with `learnedLua`, and calls again. Running it twice counts answers twice, and
 * has no other effect.
 *
 * While the target is stopped there are no permits, not even for a probe, and that time is not counted.
 *
 * The lowest --rate of all processes is the ceiling of the target, for its limiters together, whether that process sends anything or not. It ends
 * when the process withdraws it, and a minute after the last call of a dead one. Its hash has \`p:<process>\` (its last call, its rate),
 * \`s:<limiter>\` (the last call that wanted permits of it, the rate it could use) and \`tat\`, of the ceiling's slots.
 *
 * KEYS  1 limiter  2 members  3 quotas  4 stop  5 processes  6 pinned rate  7 ceiling
 * ARGV  1 process  2 whether it wants permits  3 end of its last lease  4 permits it did not use  5 now, '' = Redis TIME
 *       6 epoch it knows  7 its rate as stored, '' = none  8 its burst, '' = none  9 its in-flight slots
 *       10 hold everything for so many ms (Retry-After)  11 why  12 outage it noticed, or what its probe met, in words, or ''  13 kind of outage
 *       14 advised rate per second, '' = none  15 for so many ms
 *       16 sent  17 latencies: count  18 their sum  19 their squares  20 whether permits had to wait for a slot  21 time-outs and resets
 *       22 whether it had next to no idle time  23 what stops this process alone, '' = nothing
 *       24… epoch, accepted, refused, trouble: answers to permits of that epoch
 * returns {now, epoch, drop epoch, valid from, hold ends, why, outage began, why, kind, first, gap, count, in-flight share, rate,
 *       phase, limit met, budget left, turn, learned, seen, unreachable since, for how long the
 *       caller alone has to back off, the stop of the target or '', released epoch}; times in ms of the Redis clock, 0 = not; turn 0 = no update is due
 */
export const targetLua = `${leaseFunction}
local shortestProbe, longestProbe, updateEvery, budgetFull, troubleCosts, othersWithin, localBackoff = 500, 3000, 80, 500, 5, 500, 3000
local ceilingLives = ${ceilingLivesMs}

local now = redisNow(ARGV[5])
local s = {}
local stored = redis.call('HGETALL', KEYS[1])
for i = 1, #stored, 2 do s[stored[i]] = stored[i + 1] end
local function number(field) return tonumber(s[field] or '0') end
-- First a write that takes memory: where Redis has none left it then refuses the call as a whole, and its caller learns of that.
redis.call('HSET', KEYS[1], 'seenAt', string.format('%.4f', now))
local function put(field, value) s[field] = string.format('%.14g', value) end
local function putTime(field, value) s[field] = string.format('%.4f', value) end
local function add(field, value) put(field, number(field) + value) end

-- The clock was set back, or another server with an earlier one is Redis now: what was due then is due as long from now.
local setBack = number('seenAt') - now
if setBack > 1000 then
  for _, field in ipairs({'lookedAt', 'probeAt', 'outageAt', 'unreachableAt', 'holdUntil', 'advisedUntil', 'validFrom', 'answeredAt', 'acceptedAt'}) do
    if s[field] then putTime(field, number(field) - setBack) end
  end
end

local wants = ARGV[2] == '1'
local members, place, said = membersOf(KEYS[2], now, ARGV[1], wants, ARGV[9])
local most = 0
for _, slots in ipairs(said) do most = most + tonumber(slots) end

if ARGV[7] == '' then
  redis.call('HDEL', KEYS[7], 'p:' .. ARGV[1])
else
  redis.call('HSET', KEYS[7], 'p:' .. ARGV[1], string.format('%.3f ', now) .. ARGV[7])
end
local ceiling, ceilingTat, others = math.huge, 0, {} -- others: what the other limiters could use
local limits, quotas = {{}}, {} -- limits[1] is left out: the ceiling has its place
local function bound(rate)
  for i, limit in ipairs(parseRate(rate)) do
    if i == 1 then
      ceiling = math.min(ceiling, limit.count * 1000 / limit.period)
    else
      quotas[limit.period] = math.min(quotas[limit.period] or math.huge, limit.count)
    end
  end
end
-- A rate that an operator pinned bounds them all, and is where learning begins.
local pinned = redis.call('HGET', KEYS[6], 'rate')
if pinned then bound(pinned) end
local processRates = redis.call('HGETALL', KEYS[7])
for i = 1, #processRates, 2 do
  local kind, name = string.match(processRates[i], '^(%a):(.*)$')
  local at, words = string.match(processRates[i + 1], '^(%S+) (.*)$')
  local age = at and math.abs(now - tonumber(at))
  if not kind then
    ceilingTat = tonumber(processRates[i + 1])
  elseif age > ceilingLives then
    redis.call('HDEL', KEYS[7], processRates[i])
  elseif kind == 's' then
    if name ~= KEYS[1] and age < forgottenAfter then others[#others + 1] = tonumber(words) end
  else
    bound(words)
  end
end
for period, count in pairs(quotas) do limits[#limits + 1] = {count = count, period = period} end
-- Each limiter that is wanted gets as much of the ceiling, and more where others can't use theirs.
local share, sharers = ceiling, #others + 1
table.sort(others)
for _, other in ipairs(others) do
  if other * sharers >= share then break end
  share, sharers = share - other, sharers - 1
end
share = share / sharers

-- Every process says with each call that it is there, and whether a file stops it alone. A newcomer clears away those that have gone.
local stop = redis.call('GET', KEYS[4]) or ''
local isStopped = stop ~= ''
if redis.call('HSET', KEYS[5], ARGV[1], string.format('%.3f ', now) .. ARGV[23]) == 1 then
  local all = redis.call('HGETALL', KEYS[5])
  for i = 1, #all, 2 do
    if math.abs(now - tonumber(string.match(all[i + 1], '^%S+'))) > 60000 then redis.call('HDEL', KEYS[5], all[i]) end
  end
end
redis.call('PEXPIRE', KEYS[5], 60000)

-- 1. The server asks for a wait: no process sends before its end.
-- What a process reports before it knows of a release is what was released.
local isReleased = tonumber(ARGV[6]) < number('releasedEpoch')
local throttleFor = isReleased and 0 or tonumber(ARGV[10])
if throttleFor > 0 and now + throttleFor > number('holdUntil') then
  putTime('holdUntil', now + throttleFor)
  s.holdWhy = ARGV[11]
end
if ARGV[14] ~= '' and not isReleased then
  put('advised', tonumber(ARGV[14]))
  putTime('advisedUntil', now + tonumber(ARGV[15]))
end

-- 2. The answers. Time in which nothing might be sent doesn't count as time without answers.
if not s.epoch then s.epoch, s.seenAt, s.lookedAt, s.budget = '1', now, now - updateEvery, budgetFull end
local dt = math.max(0, now - number('seenAt'))
local closed = (s.outage or isStopped) and now or math.min(now, number('holdUntil'))
add('blockedMs', math.max(0, math.min(dt, closed - number('seenAt'))))
if wants and s.answeredAt and now - number('answeredAt') > 60000 then
  s.recall = '1'
  putTime('answeredAt', now)
end
if isStopped then
  for _, field in ipairs({'outageAt', 'unreachableAt'}) do if s[field] then putTime(field, number(field) + dt) end end
end
putTime('seenAt', now)
local current, accepted, trouble = {0, 0, 0}, 0, 0
for i = 24, #ARGV, 4 do
  accepted, trouble = accepted + tonumber(ARGV[i + 1]), trouble + tonumber(ARGV[i + 3])
  for kind, name in ipairs({'accepted', 'refused', 'trouble'}) do
    local n = tonumber(ARGV[i + kind])
    local isCurrent = ARGV[i] == s.epoch
    if isCurrent then current[kind] = current[kind] + n end
    -- What a probe meets says nothing about the rate.
    if not s.outage then add(name, n) end
    if not s.outage and isCurrent then add('current' .. name, n) end
  end
end
if #ARGV >= 24 then putTime('answeredAt', now) end
-- A process that fails while others succeed is in local backoff. Answers that still reach a failing process prove nothing: two such would
-- keep the circuit closed.
local isLocalOutage = ARGV[12] ~= '' and not s.outage and s.acceptedBy and s.acceptedBy ~= ARGV[1] and now - number('acceptedAt') < othersWithin
if accepted > 0 and wants and ARGV[12] == '' then
  putTime('acceptedAt', now)
  s.acceptedBy = ARGV[1]
end
for i, name in ipairs({'sent', 'latencies', 'latencySum', 'latencySquares', 'starved', 'lost', 'busy'}) do add(name, tonumber(ARGV[15 + i])) end
add('reports', wants and 1 or 0)
put('budget', math.max(0, math.min(budgetFull, number('budget') + accepted - troubleCosts * trouble)))

-- 3. The circuit breaker. While it is open, one id is sent as a probe now and then; the first that succeeds closes it.
local function nextEpoch() add('epoch', 1) end
if s.outage then
  if current[1] > 0 then
    s.outage, s.outageAt, s.outageKind, s.unreachableAt = nil, nil, nil, nil
    put('budget', budgetFull)
    putTime('tat', now)
    nextEpoch()
  elseif current[2] + current[3] > 0 then
    put('probeGap', math.min(longestProbe, 1.5 * number('probeGap')))
  end
elseif ARGV[12] ~= '' and ARGV[6] == s.epoch and not isLocalOutage then
  s.outage, s.outageKind, s.tripped = ARGV[12], ARGV[13], '1'
  putTime('outageAt', now)
  put('probeGap', shortestProbe)
  putTime('probeAt', now + shortestProbe)
  nextEpoch()
  s.dropEpoch = s.epoch
end
if s.outage and ARGV[12] ~= '' then s.outage, s.outageKind = ARGV[12], ARGV[13] end
if s.outageKind == 'unreachable' and not s.unreachableAt then putTime('unreachableAt', now) end

-- 4. The lease.
local rate = number('rate')
if now < number('advisedUntil') then rate = math.min(rate, number('advised')) end
if ceiling < math.huge then
  if wants and not isStopped then redis.call('HSET', KEYS[7], 's:' .. KEYS[1], string.format('%.3f %.14g', now, rate)) end
  rate = math.min(rate, share)
end
put('ceiling', share < math.huge and share or 0)
local first, gap, count, owed = now, 1, 0, number('owed')
local back = tonumber(ARGV[4])
useQuotas(KEYS[3], now, limits, -back) -- first: it may be all the room there is
local room, quotaUntil = quotaRoom(KEYS[3], now, limits)
if ceiling < math.huge then
  local slot, horizon = 1000 / ceiling, now + callEvery + reach
  ceilingTat = math.min(ceilingTat - back * slot, horizon + 2 * slot)
  ceilingTat = math.max(ceilingTat, now - math.max(paceSlack, ((tonumber(ARGV[8]) or 1) - 1) * slot))
  room = math.max(0, math.min(room, math.floor((horizon + reach - ceilingTat) / slot) + 1))
end
local dropping = tonumber(ARGV[6]) < number('dropEpoch')
local mayLeave = wants and not isStopped
local isUpdateDue = now >= number('lookedAt') + updateEvery
if isLocalOutage then
  redis.call('HDEL', KEYS[2], ARGV[1])
elseif mayLeave and s.outage then
  if now >= number('probeAt') and now >= number('holdUntil') and room > 0 then
    count = 1
    putTime('probeAt', now + number('probeGap'))
  end
elseif mayLeave and rate > 0 and not isUpdateDue then
  local tat
  tat, first, gap, count, owed = lease(now, number('tat'), {
    perSecond = rate,
    burst = tonumber(ARGV[8]),
    members = members,
    till = dropping and now or tonumber(ARGV[3]),
    back = back,
    owed = owed,
    leasedAt = number('leasedAt'),
    notBefore = number('holdUntil'),
    atMost = room,
  })
  putTime('tat', tat)
  putTime('owed', owed)
  putTime('leasedAt', now)
elseif rate > 0 then
  putTime('tat', number('tat') - back * 1000 / rate)
end
useQuotas(KEYS[3], now, limits, count)
if ceiling < math.huge then redis.call('HSET', KEYS[7], 'tat', string.format('%.4f', ceilingTat + count * 1000 / ceiling)) end
redis.call('PEXPIRE', KEYS[7], 86400000)

-- What throttles all processes: a wait that the server asked for, or a used-up quota.
local holdUntil, holdWhy = number('holdUntil'), s.holdWhy or ''
if quotaUntil > math.max(now, holdUntil) then holdUntil, holdWhy = quotaUntil, '--rate allows no more in its period' end
local inFlight = s.inFlight and math.min(number('inFlight'), most) or most
local share = math.max(1, math.floor(inFlight * (place + 1) / members) - math.floor(inFlight * place / members))

-- 5. The sums for an update of the estimate. If its process dies, these sums are lost, and the next update is due after the usual time.
local turn, seen = 0, ''
if isUpdateDue then
  putTime('lookedAt', now)
  add('turn', 1)
  turn = number('turn')
  local sums = {}
  for _, name in ipairs({'blockedMs', 'accepted', 'refused', 'trouble', 'currentaccepted', 'currentrefused', 'currenttrouble', 'sent', 'latencies',
    'latencySum', 'latencySquares', 'starved', 'busy', 'reports', 'lost', 'tripped', 'recall'}) do
    sums[name] = number(name)
    s[name] = '0'
  end
  sums.holdUntil, sums.most, sums.ceiling = number('holdUntil') > now and number('holdUntil') or 0, most, ceiling < math.huge and ceiling or 0
  sums.pinned = pinned and 1 or 0
  seen = cjson.encode(sums)
end

local flat = {}
for field, value in pairs(s) do flat[#flat + 1] = field flat[#flat + 1] = value end
redis.call('HSET', KEYS[1], unpack(flat))
if not s.outage then redis.call('HDEL', KEYS[1], 'outage', 'outageAt', 'outageKind', 'unreachableAt') end
local function time(value) return string.format('%.4f', value) end
return {time(now), s.epoch, s.dropEpoch or '0', s.validFrom or '0', time(holdUntil), holdWhy, s.outageAt or '0', s.outage or '',
  s.outageKind or '', time(first), time(gap), count, share, time(rate), s.phase or '', s.high or '0', s.budget, turn,
  turn > 0 and s.estimate or '', seen, s.unreachableAt or '0', isLocalOutage and localBackoff or 0, stop, s.releasedEpoch or '0'}
`;

/**
 * Stores a new estimate. Does nothing if another process has begun an update since: its sums are newer.
 *
 * KEYS  1 limiter
 * ARGV  1 turn  2 now, '' = Redis TIME  3 learned, as JSON  4 rate  5 1 = the rate made a step: answers to older permits can't change it again
 *       6 1 = it fell so far that leases are dropped  7 answers to permits used before this time don't count  8 phase
 *       9 the limit that was met last, per second, 0 = none yet  10 requests in flight, over the fleet
 * returns 1, or 0 if it came too late
 */
export const learnedLua = `${leaseFunction}
local s = redis.call('HMGET', KEYS[1], 'turn', 'rate', 'tat', 'epoch')
if s[1] ~= ARGV[1] then return 0 end
local now, tat, epoch = redisNow(ARGV[2]), tonumber(s[3] or '0'), tonumber(s[4])
if ARGV[5] == '1' then
  epoch = epoch + 1
  if ARGV[6] == '1' then
    tat = math.min(tat, now)
    redis.call('HSET', KEYS[1], 'dropEpoch', epoch)
  elseif tonumber(ARGV[4]) > tonumber(s[2] or '0') then
    tat = math.min(tat, now + reach)
  end
  redis.call('HSET', KEYS[1], 'validFrom', ARGV[7])
end
redis.call('HSET', KEYS[1], 'epoch', epoch, 'tat', string.format('%.4f', tat), 'estimate', ARGV[3], 'rate', ARGV[4], 'phase', ARGV[8],
  'high', ARGV[9], 'inFlight', ARGV[10])
redis.call('PEXPIRE', KEYS[1], 7776000000)
return 1
`;
