/**
 * The part that leases permits of one rate, shared by the scripts of a target and of a run.
 *
 * A permit is a point in time. All permits of a rate are one even sequence: the generic cell rate algorithm (ITU-T I.371), whose `tat` is when the
 * next permit is due, written as ms of the Redis clock. A process calls every 100 ms and gets the permits up to a little beyond its next call, so
 * that a late call leaves no gap. If Redis is far away, it calls less often and marks an id later: then permits are leased further ahead, and begin
 * later (distance.ts). At a high rate, or far away, each process gets a comb of its own (every n-th permit, continuing from the end of its
 * last lease), so that all of them send evenly. At other rates, or with fewer than three permits per call, it gets exact permits of the one
 * sequence: the requests of two combs may meet, and a target without a burst refuses one of them.
 *
 * A rate is stored as `200/1000,100000/86400000`: count / period in ms, by period. The first is the pace. Each further one is a quota, counted in 60
 * slices of its period, of which the oldest counts in full. So never more than `count` are sent in any period.
 */
export const leaseFunction = `
local callEvery, reach, forgottenAfter, paceSlack, maxOwed, catchUp, combFrom = 100, 20, 350, 40, 100, 0.03, 1000
local farthest = 15000 -- nothing is ever leased so far ahead: the clock was set back

local function parseRate(text)
  local limits = {}
  for count, period in string.gmatch(text or '', '([%d.e+-]+)/(%d+)') do
    limits[#limits + 1] = {count = tonumber(count), period = tonumber(period)}
  end
  return limits
end

-- The processes that want permits now: how many, the words of each in the order of their names, and the number of those before the caller. later:
-- how much later than a near process the caller may call again.
local function membersOf(key, now, me, wants, says, later)
  if wants then redis.call('HSET', key, me, string.format('%.3f ', now + later) .. says) else redis.call('HDEL', key, me) end
  local all, names, saidBy = redis.call('HGETALL', key), {}, {}
  for i = 1, #all, 2 do
    local seen, words = string.match(all[i + 1], '^(%S+) (.*)$')
    if tonumber(seen) > now - forgottenAfter then
      names[#names + 1] = all[i]
      saidBy[all[i]] = words
    else
      redis.call('HDEL', key, all[i])
    end
  end
  redis.call('PEXPIRE', key, 60000)
  table.sort(names)
  local said, before = {}, 0
  for i, name in ipairs(names) do
    said[i] = saidBy[name]
    if name == me then before = i - 1 end
  end
  return math.max(1, #names), said, before
end

-- The number of permits that the quotas leave, and when more come (0 = they don't hold anything back).
local function quotaRoom(key, now, limits)
  if #limits < 2 then return math.huge, 0 end
  local used, oldest = {}, {}
  local all = redis.call('HGETALL', key)
  for i = 1, #all, 2 do
    local period, slice = string.match(all[i], '^(%d+):(%d+)$')
    local width = tonumber(period) / 60
    local current = math.floor(now / width)
    if tonumber(slice) > current + 1 + math.ceil(farthest / width) then -- of a clock that was ahead: now is the latest possible time of use
      redis.call('HDEL', key, all[i])
      redis.call('HINCRBY', key, period .. ':' .. string.format('%d', current), all[i + 1])
      slice = current
    end
    if tonumber(slice) < math.floor(now / width) - 60 then
      redis.call('HDEL', key, all[i])
    else
      used[period] = (used[period] or 0) + tonumber(all[i + 1])
      if tonumber(all[i + 1]) > 0 then
        oldest[period] = math.min(oldest[period] or math.huge, (tonumber(slice) + 61) * width)
      end
    end
  end
  local room, till = math.huge, 0
  for i = 2, #limits do
    local period = string.format('%d', limits[i].period)
    local left = limits[i].count - (used[period] or 0)
    if left < room then
      room = left
      till = left < 1 and (oldest[period] or 0) or 0
    end
  end
  return math.max(0, math.floor(room)), till
end

-- at: when the last of the permits is due, if they are leased far ahead.
local function useQuotas(key, at, limits, permits)
  if permits == 0 then return end
  for i = 2, #limits do
    local period = limits[i].period
    redis.call('HINCRBY', key, string.format('%d:%d', period, math.floor(at * 60 / period)), permits)
    redis.call('PEXPIRE', key, math.min(2 * period, 2678400000))
  end
end

-- Returns unused permits, the first of which was leased at since. They are taken from the oldest slices from there on, whoever used those. So the
-- rest in those slices leaves the window no sooner than the real use does. If the slices hold fewer, the rest counts as used. ahead: as by aheadOf.
local function returnToQuotas(key, now, limits, permits, since, ahead)
  if permits == 0 then return end
  for i = 2, #limits do
    local period, left = limits[i].period, permits
    local current = math.floor(now * 60 / period)
    for slice = math.max(current - 60, math.floor(since * 60 / period)), math.floor((now + ahead) * 60 / period) do
      local field = string.format('%d:%d', period, slice)
      local returned = math.max(0, math.min(left, tonumber(redis.call('HGET', key, field) or '0')))
      if returned > 0 then redis.call('HINCRBY', key, field, -returned) end
      left = left - returned
      if left == 0 then break end
    end
  end
end

-- How much further ahead than usual permits are leased. The horizon never moves back, because processes that are farther away, or were, may have
-- permits up to it.
local function aheadOf(now, horizon, ahead)
  local left = horizon - now - callEvery - reach
  return left > math.max(1, ahead) and left < farthest and left or ahead
end

-- Permits that passed unused come back at once if no later permits were given away, or if the caller has dropped all it had. Otherwise they are owed,
-- and all permits come a little closer for as long as it takes: given back at once, they would be too many among the permits that others already
-- have. Returns tat and the debt, in ms.
local function giveBack(now, tat, unusedMs, wish)
  if tat - unusedMs <= now or (wish.till == 0 and wish.ahead > 0) then return tat - unusedMs, 0 end
  local owed = math.min(wish.owed + unusedMs, maxOwed)
  local paid = math.min(owed, catchUp * math.max(0, math.min(now - wish.leasedAt, maxOwed)))
  return tat - paid, owed - paid
end

-- wish: perSecond, members, till (end of the caller's last lease), back (permits it did not use), owed and leasedAt (as of the last lease),
-- notBefore, atMost, ahead (as by aheadOf), lead (how long before its time the caller needs a permit). Returns tat, then first permit, gap and count of
-- the lease, then the debt, then the time from which the quotas count it; times in ms.
local function lease(now, tat, wish)
  local gap = 1000 / wish.perSecond
  local share = wish.perSecond * (callEvery + wish.ahead) / 1000 / wish.members
  local horizon = now + callEvery + reach + wish.ahead
  local owed
  tat, owed = giveBack(now, tat, wish.back * gap, wish)
  tat = math.min(tat, horizon + 2 * gap)
  tat = math.max(tat, now - paceSlack + wish.lead, wish.notBefore)
  local first, every, count
  if wish.members == 1 or (share >= 3 and (wish.perSecond >= combFrom or wish.ahead > 0)) then
    every = wish.members * gap
    -- A lease ends at most one gap beyond a horizon. An end further ahead comes from a slower rate, or from a clock that was set back.
    local isKnown = wish.till > 0 and wish.till <= horizon + every
    first = math.max(now + wish.lead, isKnown and wish.till or tat - callEvery - reach - 2 * gap, wish.notBefore)
    count = math.min(math.ceil((horizon - first) / every - 1e-9), math.floor((horizon + reach - tat) / gap) + 1)
  else
    first, every = math.max(tat, now + 0.5 + wish.lead), gap
    count = math.min(math.floor((horizon - first) / gap) + 1, math.ceil(share) + 1)
    if count > 0 then tat = first end
  end
  count = math.max(0, math.min(count, wish.atMost))
  return tat + count * gap, first, every, count, owed, wish.ahead > 0 and first + count * every or now
end

local function redisNow(given)
  if given ~= '' then return tonumber(given) end
  local time = redis.call('TIME')
  return time[1] * 1000 + time[2] / 1000
end
`;
