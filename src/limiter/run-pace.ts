import type { RedisClient } from '../redis/client.ts';
import { near, type Spans } from '../redis/distance.ts';
import { leaseFunction } from './lease.lua.ts';
import type { Unused } from './permits.ts';

type PaceKeys = { run: string; members: string; quotas: string; refusals: string };

/** The answer of Redis about a run; see `runPaceLua`. `rate`: as stored, '' = none. Times are ms of the Redis clock. */
export type PermitReply = {
  /** The state of the run; for a running run, `early` before its start, and `overdue` once its --stop-at has come. */
  state: string;
  rate: string;
  now: number;
  first: number;
  gap: number;
  count: number;
  quotaUntil: number;
  /** The times when its requests may be sent, as stored, '' = at any time. */
  window: string;
  /** The time when the next free permit is due; 0 without a rate. */
  nextAt: number;
};

/** The same, and what the processes of the run need to judge refusals. */
export type PaceReply = PermitReply & {
  expected: ExpectedRefusals;
  /** What the other processes reported in the last 3 s. */
  others: readonly RefusalReport[];
};

/** Refusals that are expected: ids that are not there, and these statuses. `mayBeGone`: ids that an earlier run may have deleted. */
export type ExpectedRefusals = { absent: boolean; mayBeGone: number; statuses: readonly number[] };

/**
 * How long ago a process saw an accepted request of a resource, and for each status how many ids were refused with it in a row: in the longest streak
 * of the last seconds, and in the present one.
 */
export type RefusalReport = {
  resource: string;
  acceptedAgoMs: number;
  streaks: readonly { status: number; longest: number; lasting: number }[];
};

/** `closed`: a window of the run and when it opens, if this process finds it closed: ms of the Redis clock, 0 = it is open. */
export type PaceCall = {
  process: string;
  wants: boolean;
  till: string;
  distance?: Spans; // of Redis from the process; by default it is near
  reports?: readonly RefusalReport[];
  closed?: { window: string; until: number };
} & Unused;

/** Asks for the state of a run, and for permits of its own rate, if it has one. `now` is for tests in a time of their own. */
export function openPaceCalls(redis: RedisClient, now: () => string = () => '') {
  redis.defineCommand('expungeRunPace', { numberOfKeys: 4, lua: runPaceLua });
  const scripts = redis as unknown as { expungeRunPace(...args: (string | number)[]): Promise<(string | number)[]> };
  return async (
    keys: PaceKeys,
    { process, wants, till, unused, unusedSince, distance = near, closed, reports = [] }: PaceCall,
  ): Promise<PaceReply> => {
    const args = [process, wants ? 1 : 0, till, unused, now(), closed?.window ?? '', Math.ceil(closed?.until ?? 0)];
    const reply = await scripts.expungeRunPace(
      keys.run,
      keys.members,
      keys.quotas,
      keys.refusals,
      ...args,
      unusedSince,
      reports.length === 0 ? '' : JSON.stringify(reports),
      distance.leadMs,
      distance.aheadMs,
      distance.answerMs,
    );
    const [state, rate, at, first, gap, count, quotaUntil, nextAt, window, expectAbsent, expect, mayBeGone, ...others] =
      reply.map(String);
    return {
      state: state!,
      rate: rate!,
      now: Number(at),
      first: Number(first),
      gap: Number(gap),
      count: Number(count),
      quotaUntil: Number(quotaUntil),
      nextAt: Number(nextAt),
      window: window!,
      expected: {
        absent: expectAbsent === '1',
        mayBeGone: Number(mayBeGone),
        statuses: expect === '' ? [] : expect!.split(',').map(Number),
      },
      others: others.flatMap(readReports),
    };
  };
}

/** Reads the reports of a process, after their age in ms. */
function readReports(text: string): RefusalReport[] {
  const comma = text.indexOf(',');
  const ageMs = Number(text.slice(0, comma));
  const reports = JSON.parse(text.slice(comma + 1)) as RefusalReport[];
  return reports.map((report) => ({ ...report, acceptedAgoMs: report.acceptedAgoMs + ageMs }));
}

/**
 * The call of a process for a run that it deletes, ten times a second: reads the state of the run, and leases permits of its own rate. Repeating it
 * grants further permits, never more than the rate allows.
 *
 * It also records in the run when a used-up quota has room again, for people, and when its window opens, because no chunk is enqueued before.
 *
 * KEYS  1 run  2 members  3 quotas  4 reports about refusals
 * ARGV  1 process  2 whether it wants permits  3 end of its last lease  4 permits it did not use  5 now, '' = Redis TIME
 *       6 its window as known there  7 when that opens, 0 = it is open  8 when the first of those permits was leased
 *       9 its reports about refusals, '' = none  10 how long before its time it needs a permit  11 how much further ahead than usual it leases
 *       12 how much later than usual it calls again
 * returns {state, 'early', 'overdue' or 'missing', rate as stored or '', now, first, gap, count, when a spent quota has room again or 0,
 *       when the next free permit is due or 0, window or '', '1' with --expect-absent, --expect, how many ids may be gone, then the reports of each
 *       other process of the last 3 s, after their age in ms}; times in ms of the Redis clock
 */
const runPaceLua = `${leaseFunction}
local run = redis.call('HMGET', KEYS[1], 'state', 'rate', 'tat', 'owed', 'leasedAt', 'window', 'closedUntil', 'stopAt', 'expectAbsent', 'startsAt', 'expect', 'mayBeGone', 'horizon')
local limits = parseRate(run[2])
local now = redisNow(ARGV[5])
if run[1] and run[6] == ARGV[6] and (run[7] or '0') ~= ARGV[7] then
  redis.call('HSET', KEYS[1], 'closedUntil', ARGV[7], 'closedAt', string.format('%.0f', now))
end
if run[1] == 'running' and run[8] and now >= tonumber(run[8]) then run[1] = 'overdue' end
if run[1] == 'running' and run[10] and now < tonumber(run[10]) then run[1] = 'early' end

local function answered(...)
  local answer = {...}
  answer[#answer + 1] = run[9] or ''
  answer[#answer + 1] = run[11] or ''
  answer[#answer + 1] = run[12] or '0'
  if run[1] and ARGV[9] ~= '' then
    redis.call('HSET', KEYS[4], ARGV[1], string.format('%.0f,%s', now, ARGV[9]))
    redis.call('PEXPIRE', KEYS[4], 60000)
  end
  local told = redis.call('HGETALL', KEYS[4])
  for i = 1, #told, 2 do
    local at, report = string.match(told[i + 1], '^(%d+),(.*)$')
    if now - tonumber(at) > 3000 then redis.call('HDEL', KEYS[4], told[i])
    elseif told[i] ~= ARGV[1] then answer[#answer + 1] = string.format('%.0f,%s', now - tonumber(at), report) end
  end
  return answer
end

-- A rate that can't be read is returned unchanged: the caller can't read it either, and sends nothing.
if not run[1] or #limits == 0 then
  return answered(run[1] or 'missing', run[2] or '', string.format('%.4f', now), '0', '0', 0, 0, 0, run[6] or '')
end
local members = membersOf(KEYS[2], now, ARGV[1], ARGV[2] == '1', '', tonumber(ARGV[12]))
local ahead = aheadOf(now, tonumber(run[13] or '0'), tonumber(ARGV[11]))
local first, gap, count, quotaUntil, room, tat, owed, usedAt = now, 1, 0, 0, 0, tonumber(run[3] or '0'), 0, now
local back, perSecond = tonumber(ARGV[4]), limits[1].count * 1000 / limits[1].period
returnToQuotas(KEYS[3], now, limits, back, tonumber(ARGV[8]), ahead) -- first: it may be all the room that is left
if ARGV[2] == '1' and run[1] == 'running' then
  room, quotaUntil = quotaRoom(KEYS[3], now, limits)
  tat, first, gap, count, owed, usedAt = lease(now, tat, {
    perSecond = perSecond,
    members = members,
    till = tonumber(ARGV[3]),
    back = back,
    owed = tonumber(run[4] or '0'),
    leasedAt = tonumber(run[5] or now),
    notBefore = 0,
    atMost = room,
    ahead = ahead,
    lead = tonumber(ARGV[10]),
  })
  if ahead > 0 then redis.call('HSET', KEYS[1], 'horizon', string.format('%.4f', now + callEvery + reach + ahead)) end
  redis.call('HSET', KEYS[1], 'tat', string.format('%.4f', tat), 'owed', string.format('%.4f', owed), 'leasedAt', string.format('%.4f', now),
    'quotaUntil', string.format('%.0f', quotaUntil))
  useQuotas(KEYS[3], usedAt, limits, count)
elseif back > 0 then
  redis.call('HSET', KEYS[1], 'tat', string.format('%.4f', tat - back * 1000 / perSecond))
end
local function time(value) return string.format('%.4f', value) end
return answered(run[1], run[2], time(now), time(first), time(gap), count, time(quotaUntil), time(math.max(tat, quotaUntil)), run[6] or '')
`;
