import { leaseFunction } from './lease.lua.ts';
import {
  budgetFull,
  callArguments,
  grantedLivesMs,
  named,
  quoted,
  replyNumbers,
  replyTexts,
  workPauseMs,
} from './script-fields.ts';

/**
 * The call of a process to the limiter of its target, ten times a second, once a second while it has nothing to send, and less often while it is idle.
 * It reports answers, and leases the next permits. The state is one hash. The first call when an update of the state is due, because there was
 * something to learn, gets the sums since the last update instead of permits, writes the next state with `storeStateLua`, and calls again. A process
 * that is far away gets permits as well. Running it twice counts answers twice, and has no other effect.
 *
 * While the target is closed (see learning/closed.ts), one id is occasionally sent as a probe. While it is stopped there are no permits, not even for
 * a probe, and that time is not counted.
 *
 * The limit of the target is a ceiling for all its processes together. Its bound per second paces the permits, and each longer bound is a
 * quota. The hash of its pace has `limit` (as last seen), `from` (when it was first seen), `g:<process>` (its last call, the permits it has got under
 * a limit) and `tat`, of the ceiling's permits.
 *
 * A permit from before a limit was not counted in it, so it is not given back to it. If the field of a process is older than the last reply to it, or is
 * missing although the process knows this very limit, Redis came back older than it was. The permits that it has forgotten are then counted again, and
 * nobody gets any until all processes had the time to call.
 *
 * KEYS  1 limiter  2 members  3 quotas  4 stop  5 processes  6 limit and minimum grace  7 pace of the limit
 * ARGV  callArguments; returns replyNumbers, then replyTexts
 */
export const targetLua = `${leaseFunction}
${named(callArguments)}
local answersFrom = ${callArguments.length + 1}
local updateEvery, urgentEvery, budgetFull, troubleCosts, othersWithin, probeAgain = 80, 20, ${budgetFull}, 5, 500, 1000
local grantedLives, countAgainFor, goneAfter = ${grantedLivesMs}, 1500, 120000

local now = redisNow(asked.given)
local s, before = {}, {}
local stored = redis.call('HGETALL', KEYS[1])
for i = 1, #stored, 2 do s[stored[i]], before[stored[i]] = stored[i + 1], stored[i + 1] end
local function number(field) return tonumber(s[field] or '0') end
-- First a write that takes memory: if Redis has none left, it refuses the call as a whole, and the caller learns of that.
before.seenAt = string.format('%.4f', now)
redis.call('HSET', KEYS[1], 'seenAt', before.seenAt)
local function put(field, value) s[field] = string.format('%.14g', value) end
local function putTime(field, value) s[field] = string.format('%.4f', value) end
local function add(field, value) put(field, number(field) + value) end

-- The clock was set back, or a server with an earlier clock took over: due times become as long from now as they were then.
local setBack = number('seenAt') - now
if setBack > 1000 then
  for _, field in ipairs({'lookedAt', 'probeAt', 'closedAt', 'unreachableAt', 'holdUntil', 'claimEndsAt', 'validFrom', 'answeredAt', 'acceptedAt', 'wantedAt', 'horizon', 'droppedAt', 'callsBy'}) do
    if s[field] then putTime(field, number(field) - setBack) end
  end
end

local wants = asked.wants == '1'
local lead, later = tonumber(asked.leadMs), tonumber(asked.answerMs)
local ahead = aheadOf(now, number('horizon'), tonumber(asked.aheadMs))
local members, said, earlier = membersOf(KEYS[2], now, asked.process, wants, asked.connections, later)
local most, mostBefore = 0, 0 -- connections: of all, and of the processes before the caller
for i, connections in ipairs(said) do
  if i <= earlier then mostBefore = mostBefore + tonumber(connections) end
  most = most + tonumber(connections)
end

local limit, limitId = unpack(redis.call('HMGET', KEYS[6], 'limit', 'limitId'))
limit, limitId = limit or '', limitId or ''
local ceiling, limits = math.huge, {{}} -- limits[1] is left out: the ceiling replaces it
for _, one in ipairs(parseRate(limit)) do
  if one.period == 1000 then ceiling = one.count else limits[#limits + 1] = one end
end
local ceilingTat, limitSeen, limitFrom = 0, '', 0
local own, granted, countsUntil = 'g:' .. asked.process, nil, 0
local heardAt
local pace = redis.call('HGETALL', KEYS[7])
for i = 1, #pace, 2 do
  local field, value = pace[i], pace[i + 1]
  if field == 'tat' then ceilingTat = tonumber(value)
  elseif field == 'limit' then limitSeen = value
  elseif field == 'from' then limitFrom = tonumber(value)
  elseif field == 'countsUntil' then countsUntil = tonumber(value)
  else
    local at, number = string.match(value, '^(%S+) (.*)$')
    if field == own then granted, heardAt = tonumber(number), tonumber(at)
    elseif math.abs(now - tonumber(at)) > grantedLives then redis.call('HDEL', KEYS[7], field) end
  end
end
if limit == '' then
  if #pace > 0 then redis.call('DEL', KEYS[7]) end
elseif limit ~= limitSeen or limitFrom > now then
  limitFrom = now
  redis.call('HSET', KEYS[7], 'limit', limit, 'from', string.format('%.4f', now))
end

-- With each call, a process reports that it is there, and whether a file stops it alone. A newcomer removes processes that have gone.
local stop = redis.call('GET', KEYS[4]) or ''
local isStopped = stop ~= ''
if redis.call('HSET', KEYS[5], asked.process, string.format('%.3f ', now) .. asked.saidHere) == 1 then
  local all = redis.call('HGETALL', KEYS[5])
  for i = 1, #all, 2 do
    if math.abs(now - tonumber(string.match(all[i + 1], '^%S+'))) > goneAfter then redis.call('HDEL', KEYS[5], all[i]) end
  end
end
redis.call('PEXPIRE', KEYS[5], goneAfter)

-- 1. The server asks for a wait: no process sends before its end. If a process does not know of a release yet, its report is about the wait that was
-- released.
local isReleased = tonumber(asked.epoch) < number('releasedEpoch')
local throttleFor = isReleased and 0 or tonumber(asked.holdMs)
if throttleFor > 0 and now + throttleFor > number('holdUntil') then
  putTime('holdUntil', now + throttleFor)
  s.holdWhy = asked.holdWhy
end
if asked.claimLeft ~= '' and not isReleased then
  s.claimLeft, s.claimQuota = asked.claimLeft, asked.claimQuota
  putTime('claimEndsAt', now + tonumber(asked.claimMs))
end

-- 2. The answers. Time in which sending was not allowed doesn't count as time without answers.
if not s.epoch then s.epoch, s.seenAt, s.lookedAt, s.budget = '1', now, now - updateEvery, budgetFull end
local dt = math.max(0, now - number('seenAt'))
local closed = (s.closed or isStopped) and now or math.min(now, number('holdUntil'))
add('blockedMs', math.max(0, math.min(dt, closed - number('seenAt'))))
if wants and s.answeredAt and now - number('answeredAt') > 60000 + (s.closed and number('probeGap') or 0) then
  s.recall = '1'
  putTime('answeredAt', now)
end
if isStopped then
  for _, field in ipairs({'closedAt', 'unreachableAt'}) do if s[field] then putTime(field, number(field) + dt) end end
end
putTime('seenAt', now)
putTime('callsBy', math.max(number('callsBy'), now + tonumber(asked.restMs)))
local current, accepted, trouble = {0, 0, 0}, 0, 0
for i = answersFrom, #ARGV, 4 do
  accepted, trouble = accepted + tonumber(ARGV[i + 1]), trouble + tonumber(ARGV[i + 3])
  for kind, name in ipairs({'Accepted', 'Refused', 'Trouble'}) do
    local n = tonumber(ARGV[i + kind])
    add(string.lower(name), n)
    if ARGV[i] == s.epoch then
      current[kind] = current[kind] + n
      add('current' .. name, n)
    end
  end
end
if #ARGV >= answersFrom then putTime('answeredAt', now) end
-- A process that fails while others succeed is in local backoff. Answers that still reach a failing process prove nothing: two such processes would
-- keep the circuit closed.
local isLocalOutage = asked.alarmWhy ~= '' and not s.closed and s.acceptedBy and s.acceptedBy ~= asked.process and now - number('acceptedAt') < othersWithin
if accepted > 0 and wants and asked.alarmWhy == '' then
  putTime('acceptedAt', now + later)
  s.acceptedBy = asked.process
end
for _, name in ipairs({'sent', 'latencies', 'latencySum', 'starved', 'lost', 'busy'}) do add(name, tonumber(asked[name])) end
-- An observation of a process from an earlier epoch is over.
if asked.alarmWhy ~= '' and asked.epoch == s.epoch and not isLocalOutage then s.alarmWhy, s.alarmKind = asked.alarmWhy, asked.alarmKind end
add('reports', wants and 1 or 0)
put('budget', math.max(0, math.min(budgetFull, number('budget') + accepted - troubleCosts * trouble)))

-- 3. The lease.
local rate = math.min(number('rate'), ceiling)
put('ceiling', ceiling < math.huge and ceiling or 0)
local first, gap, count, owed, usedAt = now, 1, 0, number('owed'), now
local back = tonumber(asked.unused)
local counted = tonumber(asked.unusedSince) >= limitFrom and back or 0 -- of these: what the limit has counted
if tonumber(asked.unusedSince) < number('droppedAt') then back = 0 end -- they count as given back since then
local isOlder = limitId ~= '' and asked.limitId == limitId
if heardAt then isOlder = heardAt < tonumber(asked.heardAt) - 0.01 end
if isOlder then
  useQuotas(KEYS[3], now, limits, math.max(0, tonumber(asked.granted) - (granted or 0)))
  countsUntil = now + countAgainFor
  redis.call('HSET', KEYS[7], 'countsUntil', string.format('%.4f', countsUntil))
end
returnToQuotas(KEYS[3], now, limits, counted, tonumber(asked.unusedSince), ahead) -- first: it may be all the room that is left
if s.closed and back > 0 then putTime('probeAt', math.min(number('probeAt'), now + probeAgain)) end -- a probe that was not sent
local room, quotaUntil = quotaRoom(KEYS[3], now, limits)
if #limits > 1 and now < countsUntil and countsUntil < now + 2 * countAgainFor then room = 0 end
-- The time for which requests have been refused or failed and none was accepted. During a wait that the server asked for, no process wants a permit.
for i = answersFrom, #ARGV, 4 do add('dryAnswers', tonumber(ARGV[i + 2]) + tonumber(ARGV[i + 3])) end
local isAtWork = wants or (s.wantedAt and now < number('holdUntil'))
local isNewWork = isAtWork and (not s.wantedAt or now - number('wantedAt') > ${workPauseMs})
if accepted > 0 or isNewWork then
  putTime('drySince', now)
  s.dryMs, s.dryAnswers, s.isAccepting = '0', accepted > 0 and '0' or s.dryAnswers, accepted > 0 and '1' or '0'
elseif isAtWork and not isStopped and quotaUntil <= now then
  add('dryMs', math.max(0, now - number('wantedAt')))
end
if isAtWork then putTime('wantedAt', now) end
if ceiling < math.huge then
  local gap, horizon = 1000 / ceiling, now + callEvery + reach + ahead
  ceilingTat = math.min(ceilingTat - counted * gap, horizon + 2 * gap)
  ceilingTat = math.max(ceilingTat, now - paceSlack)
  room = math.max(0, math.min(room, math.floor((horizon + reach - ceilingTat) / gap) + 1))
end
local dropping = tonumber(asked.epoch) < number('dropEpoch')
local mayLeave = wants and not isStopped
local isUrgent = s.alarmWhy or number('released') > 0 or (s.closed and current[1] > 0)
local isNew = not s.state or s.alarmWhy or s.claimLeft or s.recall == '1'
for _, name in ipairs({'reports', 'sent', 'accepted', 'refused', 'trouble', 'lost', 'released'}) do isNew = isNew or number(name) > 0 end
-- A process that is far away leaves the update to a nearer one, and others wait for it to store the state.
local isUpdateDue = isNew and now >= number('lookedAt') + (isUrgent and urgentEvery or updateEvery) + later / 2
if isLocalOutage then
  redis.call('HDEL', KEYS[2], asked.process)
elseif mayLeave and s.closed then
  if now >= number('probeAt') and now >= number('holdUntil') and room > 0 then
    count = 1
    putTime('probeAt', now + number('probeGap'))
  end
elseif mayLeave and rate > 0 and (later > 0 or not isUpdateDue) then
  local tat
  tat, first, gap, count, owed, usedAt = lease(now, number('tat'), {
    perSecond = rate,
    members = members,
    till = dropping and now or tonumber(asked.till),
    back = back,
    owed = owed,
    leasedAt = number('leasedAt'),
    notBefore = number('holdUntil'),
    atMost = room,
    ahead = ahead,
    lead = lead,
  })
  if ahead > 0 then putTime('horizon', now + callEvery + reach + ahead) end
  putTime('tat', tat)
  putTime('owed', owed)
  putTime('leasedAt', now)
elseif rate > 0 then
  putTime('tat', number('tat') - back * 1000 / rate)
end
useQuotas(KEYS[3], usedAt, limits, count)
if ceiling < math.huge then redis.call('HSET', KEYS[7], 'tat', string.format('%.4f', ceilingTat + count * 1000 / ceiling)) end
if limit ~= '' then
  redis.call('HSET', KEYS[7], own, string.format('%.3f %.0f', now, tonumber(asked.granted) + count))
  redis.call('PEXPIRE', KEYS[7], 86400000)
end

-- What throttles all processes: a wait that the server asked for, or a used-up quota.
local holdUntil, holdWhy = number('holdUntil'), s.holdWhy or ''
if quotaUntil > math.max(now, holdUntil) then
  holdUntil, holdWhy = quotaUntil, 'the limit of this target allows no more in its period'
end
local heldSince = s.heldSince
s.heldSince = holdUntil > now and (heldSince or string.format('%.0f', now)) or nil
local inFlight = s.inFlight and math.min(number('inFlight'), most) or most
-- A process with more connections gets a larger part, because one with fewer could not use it.
local function partUpTo(connections) return math.floor(inFlight * connections / math.max(1, most)) end
local share = math.max(1, partUpTo(mostBefore + tonumber(asked.connections)) - partUpTo(mostBefore))

-- 4. The sums for an update of the state. If its process dies, these sums are lost, and the next update is due after the usual time.
local turn, seen = 0, ''
if isUpdateDue then
  putTime('lookedAt', now + later / 2)
  add('turn', 1)
  turn = number('turn')
  local sums = {}
  for _, name in ipairs({'blockedMs', 'accepted', 'refused', 'trouble', 'currentAccepted', 'currentRefused', 'currentTrouble', 'sent', 'latencies',
    'latencySum', 'starved', 'busy', 'reports', 'lost', 'recall', 'released'}) do
    sums[name] = number(name)
    if name ~= 'released' and name ~= 'recall' then s[name] = '0' end -- these stay until a state that knows of them is stored
  end
  sums.awayMs = later
  sums.now, sums.holdUntil, sums.most, sums.ceiling = now, number('holdUntil') > now and number('holdUntil') or 0, most, ceiling < math.huge and ceiling or 0
  if s.alarmWhy then sums.alarm = {why = s.alarmWhy, kind = s.alarmKind} end
  if s.claimLeft then sums.claim = {remaining = tonumber(s.claimLeft), quota = tonumber(s.claimQuota), endsAt = number('claimEndsAt')} end
  s.alarmWhy, s.alarmKind, s.claimLeft, s.claimQuota, s.claimEndsAt = nil, nil, nil, nil, nil
  seen = cjson.encode(sums)
end

local flat = {}
for field, value in pairs(s) do
  if tostring(value) ~= before[field] then flat[#flat + 1] = field flat[#flat + 1] = value end
end
if #flat > 0 then redis.call('HSET', KEYS[1], unpack(flat)) end
if heldSince and not s.heldSince then redis.call('HDEL', KEYS[1], 'heldSince') end
if turn > 0 then redis.call('HDEL', KEYS[1], 'alarmWhy', 'alarmKind', 'claimLeft', 'claimQuota', 'claimEndsAt') end
local isOutage = s.closed and s.closed ~= 'held'
local answer = {
  now = now, validFrom = number('validFrom'), holdUntil = holdUntil, outageAt = isOutage and number('closedAt') or 0, unreachableAt = number('unreachableAt'),
  first = first, gap = gap, count = count, inFlightShare = share, rate = rate, ceiling = number('ceiling'), limitMet = number('high'), budget = number('budget'), turn = turn,
  failsAlone = isLocalOutage and 1 or 0, releasedEpoch = number('releasedEpoch'),
  epoch = s.epoch, dropEpoch = s.dropEpoch or '0', holdWhy = holdWhy, closed = s.closed or '', outageWhy = isOutage and s.closedWhy or '',
  phase = s.phase or '', learned = turn > 0 and s.state or '', seen = seen, stop = stop, limitId = limitId,
}
local out = {}
for _, name in ipairs({${quoted(replyNumbers)}}) do out[#out + 1] = string.format('%.17g', answer[name]) end
for _, name in ipairs({${quoted(replyTexts)}}) do out[#out + 1] = answer[name] end
return out
`;
