import { randomUUID } from 'node:crypto';
import { describe, expect, onTestFinished, test } from 'vitest';
import { readTargetAudit } from '../../../src/ledger/audit.ts';
import { forgetRate, releaseTarget, setLimit } from '../../../src/ledger/steer-target.ts';
import { control, type TargetControl } from '../../../src/limiter/learning/control.ts';
import { startRamp } from '../../../src/limiter/learning/ramp.ts';
import type { Alarm, Sums } from '../../../src/limiter/learning/sums.ts';
import { AnswerTally } from '../../../src/limiter/outage.ts';
import { readTargetState } from '../../../src/limiter/read-target.ts';
import { storedStop } from '../../../src/limiter/stop.ts';
import { limiterKeys, openTargetCalls, type TargetCall, type TargetReply } from '../../../src/limiter/target-call.ts';
import { parseRate, storedRate } from '../../../src/model/rate.ts';
import { Distance, type Spans } from '../../../src/redis/distance.ts';
import { keys as allKeys } from '../../../src/redis/keys.ts';
import { redisDuringTests } from '../../support/redis.ts';
import { sized } from '../../support/size.ts';
import { sums } from '../../support/sums.ts';
import { quietCall } from '../../support/target-call.ts';

// The script of the target's limiter on a real Redis, in a time of our own.

const redis = await redisDuringTests();

const startMs = 1_800_000_000_000;

/** A limiter of its own, and processes that call it at the times a test chooses. */
function openFleet(atEnd: (task: () => Promise<void>) => void, name = `test-${randomUUID()}`) {
  const keys = limiterKeys(name);
  let now = startMs;
  const calls = openTargetCalls(redis, keys, () => String(now));
  const known = new Map<string, { till: string; epoch: string }>();
  atEnd(async () => void (await redis.unlink(...Object.values(keys), allKeys.targetAudit(name))));
  const callOf = (process: string, wish: Partial<TargetCall>): TargetCall => {
    const { till = '0', epoch = '0' } = known.get(process) ?? {};
    return quietCall({ process, till, epoch, ...wish });
  };
  /** Whoever gets the turn of an update gets no permits, and calls again, once it has decided. */
  const call = async (
    process: string,
    wish: Partial<TargetCall>,
    decides: (reply: TargetReply) => Promise<unknown>,
  ) => {
    const looked = await calls.call(callOf(process, wish));
    let reply = looked;
    if (looked.turn > 0) {
      await decides(looked);
      known.set(process, { till: known.get(process)?.till ?? '0', epoch: looked.epoch });
      const again = { ...wish, unused: 0, tally: new AnswerTally(), hold: none, alarm: null, claim: null };
      delete again.epoch;
      const { turn, learned, seen } = looked;
      const isOver = looked.rate > 0 && looked.count === 0 && looked.failsAlone === 0;
      if (isOver) reply = { ...(await calls.call(callOf(process, again))), turn, learned, seen };
    }
    const till = reply.count > 0 ? String(reply.first + reply.gap * reply.count) : known.get(process)?.till;
    known.set(process, { till: till ?? '0', epoch: reply.epoch });
    return reply;
  };
  /** A call; an update that is due to it is not decided. */
  const at = (ms: number, process: string, wish: Partial<TargetCall> = {}): Promise<TargetReply> => {
    now = startMs + ms;
    return call(process, wish, async () => {});
  };
  /** A call, and what a process does with the reply: it decides what is next where that is up to it. */
  const live = (ms: number, process: string, wish: Partial<TargetCall> = {}): Promise<TargetReply> => {
    now = startMs + ms;
    return call(process, wish, (reply) => calls.store(reply.turn, stateIn(reply), decided(reply)));
  };
  /** Stores a rate that is known, as if it had been learned. */
  const learn = (turn: number, rate: number, { validFrom = 0, drops = false, inFlight = 64 } = {}) =>
    calls.store(turn, null, knownState(rate, { validFrom, drops, inFlight }));
  /** Sets the limit of the target; null ends it. */
  const limit = (text: string | null) =>
    text === null ? redis.hdel(keys.bounds, 'limit') : redis.hset(keys.bounds, 'limit', storedRate(parseRate(text)));
  /** What is stored. */
  const state = async () => JSON.parse((await redis.hget(keys.limiter, 'state'))!) as TargetControl;
  return { at, live, learn, limit, state, keys, fp: name };
}

const none = { ms: 0, why: '' };

/** The state before an update, as its turn tells it. */
function stateIn({ learned }: TargetReply): TargetControl | null {
  return learned === '' ? null : (JSON.parse(learned) as TargetControl);
}

/** What follows from a turn. */
function decided(reply: TargetReply): TargetControl {
  return control(stateIn(reply), JSON.parse(reply.seen) as Sums);
}

const nothingSeen = sums({ now: startMs, reports: 0 });

function knownState(
  rate: number,
  { validFrom, drops, inFlight }: { validFrom: number; drops: boolean; inFlight: number },
) {
  const first = control(null, nothingSeen);
  const ramp = startRamp(first.rate, { low: rate, high: 1.01 * rate }, { refused: 0, blockedMs: 0 }, startMs);
  const known = { ...ramp, rate, from: rate, validFromMs: validFrom };
  const dropEpoch = drops ? known.epoch : 0;
  return { ...first, rate: { ...known, dropEpoch }, inFlight: { ...first.inFlight, limit: inFlight } };
}

function tally(epoch: string, counts: { accepted?: number; refused?: number; lost?: number }): AnswerTally {
  const all = new AnswerTally();
  for (let n = counts.accepted ?? 0; n > 0; n--) all.add(Number(epoch), 'accepted', 10);
  for (let n = counts.refused ?? 0; n > 0; n--) all.add(Number(epoch), 'refused', 10);
  for (let n = counts.lost ?? 0; n > 0; n--) all.add(Number(epoch), 'lost', 10);
  return all;
}

/** When permits of a lease are due, in ms since the test began. */
function timesOf({ first, gap, count }: TargetReply): number[] {
  return Array.from({ length: count }, (_, i) => first + i * gap - startMs);
}

function maxWithin(times: number[], windowMs: number): number {
  const sorted = times.toSorted((a, b) => a - b);
  let [from, most] = [0, 0];
  for (const [i, at] of sorted.entries()) {
    while (at - sorted[from]! >= windowMs) from++;
    most = Math.max(most, i - from + 1);
  }
  return most;
}

function randomOf(seed: number): () => number {
  let last = seed;
  return () => {
    last = (last * 48_271) % 2_147_483_647;
    return last / 2_147_483_647;
  };
}

/** Calls of some processes, ten times a second each with a little jitter, for so many seconds; the times of the permits that they got. */
async function play(
  at: ReturnType<typeof openFleet>['at'],
  processes: number,
  seconds: number,
  wish: Partial<TargetCall>,
) {
  const times: number[] = [];
  const random = randomOf(7);
  for (let tick = 0; tick < seconds * 10; tick++) {
    for (let n = 0; n < processes; n++) {
      const ms = 100 * tick + (100 * n) / processes + 6 * random();
      times.push(...timesOf(await at(ms, `p${n}`, wish)));
    }
  }
  return times.filter((time) => time < 1_000 * seconds);
}

/** A limiter whose target has a rate, as after its first look. */
async function openRated(atEnd: Parameters<typeof openFleet>[0], rate: number, name?: string) {
  const fleet = openFleet(atEnd, name);
  const { turn } = await fleet.at(0, 'p0');
  await fleet.learn(turn, rate);
  return fleet;
}

describe('permits of a target', () => {
  test.for([
    [1_000, 1],
    [1_000, 4],
    [50, 1],
    [50, 4],
    [50, 9],
    [5, 4],
  ])('at %i/s are even over %i processes, and none are wasted', async ([rate, processes], { onTestFinished }) => {
    const { at, limit } = await openRated(onTestFinished, 1_000_000);
    await limit(`${rate}/s`);
    const seconds = sized(4, 20);
    const times = await play(at, processes!, seconds, {});
    expect(maxWithin(times, 1_000)).toBeLessThanOrEqual(1.05 * rate! + Math.max(1, rate! / 20));
    expect(times.length).toBeGreaterThanOrEqual(0.97 * seconds * rate! - 1);
    expect(times.length).toBeLessThanOrEqual((seconds + 0.12) * rate! + Math.max(1, rate! / 20) + 1);
  });

  test('that one process left unused come back to it or to others', async ({ onTestFinished }) => {
    const others: number[] = [];
    for (const unused of [0, 5]) {
      const { at } = await openRated(onTestFinished, 40);
      expect((await at(0, 'p0')).count).toBe(5);
      await at(50, 'p0');
      await at(60, 'p0', { wants: false, unused });
      others.push((await at(70, 'p1')).count);
    }
    expect(others[1]).toBeGreaterThan(others[0]!);
  });

  test('of a process that is silent go to the others after a third of a second', async ({ onTestFinished }) => {
    const { at } = await openRated(onTestFinished, 1_000);
    await at(0, 'p1');
    expect((await at(100, 'p0')).gap).toBeCloseTo(2);
    expect((await at(500, 'p0')).gap).toBeCloseTo(1);
  });

  test('follow the limit as it changes, and what was learned once it ends', async ({ onTestFinished }) => {
    const { at, limit } = await openRated(onTestFinished, 1_000);
    await limit('100/s');
    expect(await at(50, 'p1')).toMatchObject({ rate: 100, ceiling: 100 });
    await limit('200/s');
    expect((await at(70, 'p2')).rate).toBe(200);
    await limit('100000/day');
    expect(await at(90, 'p1')).toMatchObject({ rate: 1_000, ceiling: 0 });
    await limit(null);
    expect((await at(110, 'p2')).rate).toBe(1_000);
  });

  test('never exceed a quota in any window of its period', async ({ onTestFinished }) => {
    const { at, limit } = await openRated(onTestFinished, 1_000);
    await limit('20/s,300/min');
    const seconds = sized(70, 150);
    const times = await play(at, sized(2, 3), seconds, {});
    expect(maxWithin(times, 60_000)).toBeLessThanOrEqual(300);
    expect(maxWithin(times, 1_000)).toBeLessThanOrEqual(22);
    expect(times.length).toBeGreaterThan(4 * seconds);
  });

  test('are not given to somebody who wants none, and not before anything is known', async ({ onTestFinished }) => {
    const fleet = openFleet(onTestFinished);
    expect(await fleet.at(0, 'p0')).toMatchObject({ count: 0, turn: 1, learned: '' });
    await fleet.learn(1, 100);
    expect(await fleet.at(10, 'p0', { wants: false })).toMatchObject({ count: 0 });
  });
});

/** A process whose Redis is `roundTripMs` away, which works from one second to another. */
type Far = { roundTripMs: (ms: number) => number; from?: number; to?: number };

const far = (ms: number) => () => ms;
const comesAndGoes = (ms: number) => (ms % 8_000 < 4_000 ? 5 : 200);

/** Permits by process: when they are due, and whether their ids can be marked by then. */
async function playFar(at: ReturnType<typeof openFleet>['at'], processes: readonly Far[], seconds: number) {
  const random = randomOf(7);
  const all = processes.map(({ from = 0 }) => ({
    nextMs: 1_000 * from + 100 * random(),
    distance: new Distance(),
    times: [] as number[],
    usable: [] as number[],
    unused: 0,
  }));
  for (let ms = 0; ms < 1_000 * seconds; ms++) {
    for (const [n, process] of all.entries()) {
      if (ms < process.nextMs || ms >= 1_000 * (processes[n]!.to ?? seconds)) continue;
      const roundTripMs = processes[n]!.roundTripMs(ms);
      const { distance, unused } = process;
      const reply = await at(ms, `p${n}`, { distance: { ...spansOf(distance) }, unused, unusedSince: startMs + ms });
      distance.observe(roundTripMs);
      process.nextMs = ms + Math.max(100, roundTripMs + 50) + 6 * random();
      const times = timesOf(reply);
      const usable = times.filter((time) => time >= ms + 1.5 * roundTripMs - 60);
      process.times.push(...times);
      process.usable.push(...usable);
      process.unused = times.length - usable.length;
    }
  }
  return all;
}

function spansOf({ answerMs, leadMs, aheadMs }: Spans): Spans {
  return { answerMs, leadMs, aheadMs };
}

describe('permits for a Redis at any distance', () => {
  test.for<[string, number, Far[]]>([
    ['one, 60 ms', 100, [{ roundTripMs: far(60) }]],
    ['one, 1.5 s', 100, [{ roundTripMs: far(1_500) }]],
    ['four, 1.5 s', 100, Array.from({ length: 4 }, () => ({ roundTripMs: far(1_500) }))],
    ['four, 150 ms, slowly', 5, Array.from({ length: 4 }, () => ({ roundTripMs: far(150) }))],
    ['a near one and a far one', 100, [{ roundTripMs: far(1) }, { roundTripMs: far(1_500) }]],
    ['5 ms, 200 ms, 5 ms …', 100, [{ roundTripMs: comesAndGoes }]],
    ['two of them', 100, [{ roundTripMs: comesAndGoes }, { roundTripMs: far(1) }]],
    ['a near one joins', 100, [{ roundTripMs: far(1_500) }, { roundTripMs: far(1), from: 15 }]],
    ['a far one joins', 100, [{ roundTripMs: far(1) }, { roundTripMs: far(1_500), from: 15 }]],
    ['a far one goes', 100, [{ roundTripMs: far(1_500), to: 20 }, { roundTripMs: far(1) }]],
  ])(
    'are no more than the rate, come in time, and reach everybody: %s',
    async ([, rate, processes], { onTestFinished }) => {
      const { at, limit } = await openRated(onTestFinished, 1_000_000);
      await limit(`${rate}/s`);
      const seconds = 40;
      const seen = await playFar(at, processes, seconds);
      const usable = seen.flatMap((process) => process.usable);
      const most = maxWithin(usable, 1_000);
      const inTheEnd = (times: number[]) => times.filter((time) => time >= 28_000 && time < 38_000).length;
      expect(most).toBeLessThanOrEqual(1.15 * rate + 1);
      expect(inTheEnd(usable)).toBeGreaterThanOrEqual(7.5 * rate);
      for (const [n, process] of seen.entries())
        if ((processes[n]!.to ?? seconds) === seconds)
          expect(inTheEnd(process.usable)).toBeGreaterThanOrEqual((2 * rate) / processes.length);
    },
  );

  test('never exceed a quota either, although they are used later', async ({ onTestFinished }) => {
    const { at, limit } = await openRated(onTestFinished, 1_000);
    await limit('20/s,300/min');
    const seen = await playFar(at, [{ roundTripMs: far(1_500) }, { roundTripMs: far(1) }], 150);
    const usable = seen.flatMap((process) => process.usable);
    expect(maxWithin(usable, 60_000)).toBeLessThanOrEqual(300);
    expect(usable.length).toBeGreaterThan(500);
  });

  test('negative control: with the spans of a near Redis none comes in time', async ({ onTestFinished }) => {
    const { at, limit } = await openRated(onTestFinished, 1_000_000);
    await limit('100/s');
    const times: number[] = [];
    for (let ms = 0; ms < 5_000; ms += 200)
      times.push(...timesOf(await at(ms, 'p0')).filter((time) => time >= ms + 240));
    expect(times).toEqual([]);
  });
});

describe('permits after something changed', () => {
  test('come at once where the limit was low before', async ({ onTestFinished }) => {
    const { at, limit } = await openRated(onTestFinished, 1_000);
    await limit('1/s');
    await at(0, 'p0');
    await limit('200/s');
    let permits = 0;
    for (let ms = 1_000; ms < 2_000; ms += 100) permits += (await at(ms, 'p0')).count;
    expect(permits).toBeGreaterThan(180);
  });

  test('are no more than a lower limit allows, whatever came before', async ({ onTestFinished }) => {
    const { at, limit } = await openRated(onTestFinished, 1_000);
    await limit('200/s,150/day');
    const times: number[] = [];
    for (let ms = 0; ms < 500; ms += 100) times.push(...timesOf(await at(ms, 'p0')));
    await limit('5/s,103/day');
    for (let ms = 500; ms < 3_000; ms += 100) times.push(...timesOf(await at(ms, `p${(ms / 100) % 2}`)));
    expect(
      maxWithin(
        times.filter((time) => time > 620),
        1_000,
      ),
    ).toBeLessThanOrEqual(6);
    expect(times.length).toBe(Math.max(103, times.filter((time) => time <= 620).length));
  });

  test('that were leased before a limit held do not come back to its quota', async ({ onTestFinished }) => {
    const { at, limit } = await openRated(onTestFinished, 1_000);
    const { count, now } = await at(0, 'p0');
    expect(count).toBeGreaterThan(50);
    await limit('10/day');
    expect((await at(20, 'p1')).count).toBe(10);
    expect((await at(40, 'p0', { unused: count, unusedSince: now })).count).toBe(0);
    const later = await at(60, 'p1', { unused: 4, unusedSince: startMs + 20 }); // negative control: these were counted
    expect(later.count).toBe(4);
  });

  test('count as used if the limit changes before they come back', async ({ onTestFinished }) => {
    const { at, limit } = await openRated(onTestFinished, 1_000);
    await limit('10/day');
    const { count, now } = await at(0, 'p0');
    await limit('12/day');
    expect((await at(20, 'p0', { unused: count, unusedSince: now })).count).toBe(2); // as used: that is the safe side
    await limit('9/day');
    expect((await at(40, 'p0')).count).toBe(0);
  });

  test('go on at once where the clock of Redis was set back', async ({ onTestFinished }) => {
    const { at } = await openRated(onTestFinished, 200);
    await at(3_600_000, 'p0');
    await at(3_600_100, 'p0', { hold: { ms: 500, why: 'x' } });
    const times = await play(at, 1, 5, {});
    expect(times.length).toBeGreaterThan(800);
  });

  test('are there for a crowd that comes all at once to a target nobody knows', async ({ onTestFinished }) => {
    const fleet = openFleet(onTestFinished);
    const { turn } = await fleet.at(0, 'p0');
    for (let n = 1; n < 40; n++) expect((await fleet.at(n / 2, `p${n}`)).turn).toBe(0);
    expect(await fleet.learn(turn, 100)).toBe(true);
  });

  test('that Redis has forgotten are counted again, whoever calls first', async ({ onTestFinished }) => {
    const { at, limit, keys } = await openRated(onTestFinished, 200);
    await limit('60/day');
    await redis.hset(keys.bounds, 'limitId', 'ours');
    const nothing = { granted: 0, heardAt: 0, limitId: '' };
    const got = { p0: nothing, p1: nothing, p2: nothing };
    const call = async (ms: number, process: keyof typeof got) => {
      const { count, now, limitId } = await at(ms, process, got[process]);
      got[process] = { granted: got[process].granted + count, heardAt: now, limitId };
      return count;
    };
    const all = () => got.p0.granted + got.p1.granted + got.p2.granted;
    const stored = () => Promise.all([redis.hgetall(keys.quotas), redis.hgetall(keys.pace)]);
    const goBack = async ([quotas, pace]: Awaited<ReturnType<typeof stored>>) => {
      await redis.unlink(keys.quotas, keys.pace);
      await redis.hset(keys.quotas, quotas);
      await redis.hset(keys.pace, pace);
    };
    await call(0, 'p2');
    await call(10, 'p1');
    const before = await stored();
    expect(all()).toBeLessThan(60);
    for (let ms = 100; ms < 600; ms += 100) await call(ms, ms % 200 > 0 ? 'p0' : 'p1');
    await call(600, 'p2');
    expect(all()).toBe(60);
    await goBack(before);
    for (let ms = 700; ms < 5_000; ms += 300)
      for (const [n, process] of (['p2', 'p1', 'p0'] as const).entries()) expect(await call(ms + n, process)).toBe(0);
    await redis.unlink(keys.quotas, keys.pace);
    for (let ms = 6_000; ms < 9_000; ms += 300)
      for (const [n, process] of (['p2', 'p1', 'p0'] as const).entries()) expect(await call(ms + n, process)).toBe(0);
    await limit('70/day'); // negative control: of another limit nothing was lost
    await redis.hset(keys.bounds, 'limitId', 'another');
    await call(10_000, 'p2');
    expect(all()).toBe(70);
  });

  test('hold the quotas of all processes, and only as long as the limit lasts', async ({ onTestFinished }) => {
    const { at, limit } = await openRated(onTestFinished, 1_000);
    await limit('100/s,30/day');
    let permits = 0;
    for (let ms = 0; ms < 2_000; ms += 100) permits += (await at(ms, 'p0')).count + (await at(ms + 50, 'p1')).count;
    expect(permits).toBe(30);
    expect(await at(2_000, 'p1')).toMatchObject({
      count: 0,
      holdWhy: 'the limit of this target allows no more in its period',
    });
    await limit(null);
    expect((await at(2_500, 'p1')).count).toBeGreaterThan(10);
  });
});

describe('a throttle', () => {
  test('keeps every process from sending before its end', async ({ onTestFinished }) => {
    const { at } = await openRated(onTestFinished, 500);
    await at(0, 'p0', { hold: { ms: 5_000, why: 'Retry-After 5' } });
    expect(await at(20, 'p1')).toMatchObject({ count: 0, holdWhy: 'Retry-After 5', holdUntil: startMs + 5_000 });
    const times = timesOf(await at(4_950, 'p1'));
    expect(times.length).toBeGreaterThan(10);
    expect(Math.min(...times)).toBeGreaterThanOrEqual(5_000);
  });

  test('is not lengthened by answers that were on their way, unless they name a later end', async ({
    onTestFinished,
  }) => {
    const { at } = await openRated(onTestFinished, 500);
    await at(0, 'p0', { hold: { ms: 5_000, why: 'a' } });
    expect((await at(30, 'p1', { hold: { ms: 2_000, why: 'b' } })).holdUntil).toBe(startMs + 5_000);
    expect((await at(30, 'p1', { hold: { ms: 9_000, why: 'c' } })).holdUntil).toBe(startMs + 9_030);
  });
});

const author = { who: 'ana', reason: 'a test', at: 1 };
const alarm: Alarm = { why: 'the API answers 503 to everything', kind: 'trouble' };

describe('a release', () => {
  const hold = { ms: 3_600_000, why: 'Retry-After 3600' };

  test('lets every process go on at once, and what was asked for before it no longer counts', async ({
    onTestFinished,
  }) => {
    const { live, state, fp } = await openRated(onTestFinished, 500);
    const claim = { remaining: 1, quota: null, forMs: 3_600_000 };
    await live(0, 'p0', { hold, claim });
    expect(await live(20, 'p1')).toMatchObject({ count: 0, holdWhy: hold.why });
    expect(await live(100, 'p0')).toMatchObject({ closed: 'held', outageWhy: '' });
    expect((await state()).announced).not.toBeNull();
    expect(await releaseTarget(redis, fp, author)).toBe(true);
    expect(await live(110, 'p0', { hold, claim })).toMatchObject({ holdUntil: 0, holdWhy: '', closed: '' });
    expect(timesOf(await live(120, 'p1')).length).toBeGreaterThan(10);
    await live(190, 'p1');
    expect(await state()).toMatchObject({ closed: null, announced: null });
    expect(await live(200, 'p0', { hold })).toMatchObject({ count: 0, holdUntil: startMs + 200 + hold.ms });
    expect(await releaseTarget(redis, fp, author)).toBe(true);
    expect(await releaseTarget(redis, fp, author)).toBe(false);
    const trail = (await readTargetAudit(redis, fp)).map(({ action, who, reason }) => [action, who, reason]);
    expect(trail).toEqual([1, 2].map(() => ['release', 'ana', 'a test']));
  });

  test('closes the circuit, and a process that noticed the trouble before it does not open it again', async ({
    onTestFinished,
  }) => {
    const { live, fp } = await openRated(onTestFinished, 1_000);
    await live(0, 'p0');
    await live(50, 'p1');
    expect((await live(100, 'p0', { alarm })).outageWhy).toBe(alarm.why);
    expect(await releaseTarget(redis, fp, author)).toBe(true);
    expect(await live(150, 'p1', { alarm })).toMatchObject({ outageWhy: '', closed: '' });
    expect((await live(200, 'p0')).count).toBeGreaterThan(10);
  });

  test('is not undone by an update of the state that was under way, and later answers still count', async ({
    onTestFinished,
  }) => {
    const { at, learn, fp } = await openRated(onTestFinished, 500);
    const atItsEnd = { validFrom: startMs + hold.ms };
    expect(await learn((await at(100, 'p0', { hold })).turn, 400, atItsEnd)).toBe(true);
    const { turn, validFrom } = await at(200, 'p0');
    expect(validFrom).toBe(atItsEnd.validFrom);
    await releaseTarget(redis, fp, author);
    expect(await learn(turn, 300, atItsEnd)).toBe(false);
    const after = await at(220, 'p0');
    expect([after.rate, after.validFrom < startMs + 1_000]).toEqual([400, true]);
  });
});

describe('a rate that an operator', () => {
  test('forgets is looked for anew, though somebody was about to write it down', async ({ onTestFinished }) => {
    const { at, learn, fp } = await openRated(onTestFinished, 500);
    const { turn } = await at(100, 'p0');
    expect(await forgetRate(redis, fp, author)).toBe(true);
    expect(await learn(turn, 500)).toBe(false);
    const next = await at(120, 'p1');
    expect(next).toMatchObject({ count: 0, rate: 0, dropEpoch: next.epoch });
    const seen = await at(200, 'p0');
    expect([seen.learned, decided(seen).rate.rate]).toEqual(['', 20]);
    expect(await learn(seen.turn, 20)).toBe(true);
    expect((await at(220, 'p1')).rate).toBe(20);
  });

  test('limits keeps what was learned, which never exceeds the limit', async ({ onTestFinished }) => {
    const { at, learn, fp } = await openRated(onTestFinished, 500);
    await at(0, 'p1');
    const limit = parseRate('200/s');
    expect([await setLimit(redis, fp, limit, author), await setLimit(redis, fp, limit, author)]).toEqual([true, false]);
    const seen = await at(100, 'p0');
    expect(decided(seen).rate).toMatchObject({ rate: 200, low: 500 });
    await learn(seen.turn, 700);
    expect((await at(150, 'p1')).rate).toBe(200);
    expect(await setLimit(redis, fp, null, author)).toBe(true);
    expect((await at(600, 'p1')).rate).toBe(700);
    expect((await readTargetAudit(redis, fp)).map(({ action, limit }) => [action, limit])).toEqual([
      ['limit', '200/s'],
      ['limit', null],
    ]);
  });

  test('limits is where an unknown one begins', async ({ onTestFinished }) => {
    const { at, limit } = openFleet(onTestFinished);
    await limit('200/s');
    expect(decided(await at(0, 'p0')).rate).toMatchObject({ rate: 200, low: 0 });
  });
});

describe('a stopped target', () => {
  const stop = storedStop({ by: 'operator', who: 'ana', reason: 'a test', at: 1 });

  /** @invariant stop-everywhere: A stop applies to every process and to every later run. */
  test('gives nobody a permit, not even for a probe, and goes on at once when it is lifted', async ({
    onTestFinished,
  }) => {
    const { live, keys } = await openRated(onTestFinished, 1_000);
    expect((await live(0, 'p0')).count).toBeGreaterThan(0);
    await redis.set(keys.stop, stop);
    for (let ms = 100; ms < 3_000; ms += 50)
      expect(await live(ms, `p${(ms / 50) % 2}`)).toMatchObject({ count: 0, stop });
    await live(3_000, 'p0', { alarm });
    for (let ms = 3_050; ms < 10_000; ms += 50) expect((await live(ms, 'p0')).count).toBe(0);
    await redis.del(keys.stop);
    await live(10_000, 'p0');
    expect((await live(10_600, 'p0')).count).toBe(1);
  });

  test('loses no time of its outage, and learns nothing from standing still', async ({ onTestFinished }) => {
    const { live, keys } = await openRated(onTestFinished, 1_000);
    await live(0, 'p0');
    await live(100, 'p0', { alarm: { why: 'connection refused', kind: 'unreachable' } });
    await live(1_000, 'p0');
    await redis.set(keys.stop, stop);
    for (let ms = 1_100; ms <= 61_000; ms += ms < 60_000 ? 1_000 : 100) await live(ms, 'p0');
    await redis.del(keys.stop);
    const { outageAt, unreachableAt, now, seen } = await live(61_100, 'p0');
    expect([now - outageAt, now - unreachableAt].map(Math.round)).toEqual([1_000, 1_000]);
    expect(JSON.parse(seen).blockedMs).toBeGreaterThan(0);
  });

  test('is told apart from a process that a file stops', async ({ onTestFinished }) => {
    const { at, keys } = await openRated(onTestFinished, 1_000);
    const byFile = storedStop({ by: 'file', who: 'the file stop', reason: '', at: 1 });
    expect(await at(100, 'p0', { wants: false, here: byFile })).toMatchObject({ count: 0, stop: '' });
    expect((await at(150, 'p1')).count).toBeGreaterThan(0);
    const stopOf = async (process: string) => (await redis.hget(keys.processes, process))?.replace(/^\S+ /, '');
    expect([await stopOf('p0'), await stopOf('p1')]).toEqual([byFile, quietCall().here]);
    await at(200, 'p0');
    expect(await stopOf('p0')).toBe(quietCall().here);
  });
});

describe('the breaker', () => {
  async function openBroken(atEnd: Parameters<typeof openFleet>[0]) {
    const fleet = await openRated(atEnd, 1_000);
    await fleet.live(0, 'p0');
    await fleet.live(50, 'p1');
    return { ...fleet, broken: await fleet.live(100, 'p0', { alarm }) };
  }

  test('stops everybody and lets single probes through, at most two a second', async ({ onTestFinished }) => {
    const { live, broken } = await openBroken(onTestFinished);
    expect(broken).toMatchObject({ count: 0, outageWhy: alarm.why, closed: 'trouble', dropEpoch: broken.epoch });
    const probes: number[] = [];
    for (let ms = 150; ms < sized(20_000, 60_000); ms += 50) {
      const failed = tally(broken.epoch, { lost: probes.length > 0 && probes.at(-1)! > ms - 60 ? 1 : 0 });
      const { count } = await live(ms, `p${(ms / 50) % 2}`, { tally: failed });
      if (count > 0) probes.push(ms);
      expect(count).toBeLessThanOrEqual(1);
    }
    expect(maxWithin(probes, 1_000)).toBeLessThanOrEqual(2);
    expect(probes.length).toBeGreaterThan(sized(5, 15));
    const gaps = probes.slice(1).map((probe, i) => probe - probes[i]!);
    expect(Math.max(...gaps)).toBeLessThanOrEqual(3_200);
  });

  test('is closed by the first probe that gets through, not by late answers', async ({ onTestFinished }) => {
    const { live, broken } = await openBroken(onTestFinished);
    const late = tally(String(Number(broken.epoch) - 1), { accepted: 5 });
    expect((await live(300, 'p1', { tally: late })).outageWhy).toBe(alarm.why);
    expect((await live(700, 'p0')).count).toBe(1);
    const closed = await live(720, 'p0', { tally: tally(broken.epoch, { accepted: 1 }) });
    expect(closed).toMatchObject({ outageWhy: '', outageAt: 0 });
    expect(closed.count).toBeGreaterThan(10);
  });

  test('says that the API throttles where it could not be reached before, and counts a later outage anew', async ({
    onTestFinished,
  }) => {
    const { live, fp } = await openRated(onTestFinished, 1_000);
    await live(0, 'p0');
    const away = { why: 'the API cannot be reached', kind: 'unreachable' } as const;
    const { epoch } = await live(100, 'p0', { alarm: away });
    await live(60_000, 'p0', { tally: tally(epoch, { refused: 1 }) });
    const refusing = await live(60_200, 'p0');
    expect(refusing).toMatchObject({
      closed: 'refused',
      outageWhy: 'the API throttles every request',
      unreachableAt: 0,
    });
    expect(refusing.now - refusing.outageAt).toBeGreaterThan(60_000);
    expect((await readTargetState(redis, fp))!.outage).toMatchObject({ kind: 'refused', since: startMs + 60_000 });
    await live(70_000, 'p0', { alarm: away });
    const again = await live(70_100, 'p0');
    expect(again).toMatchObject({ closed: 'unreachable', outageWhy: away.why });
    expect(again.now - again.unreachableAt).toBeLessThan(1_000);
  });

  test('stays closed where only one process fails, which backs off locally', async ({ onTestFinished }) => {
    const { live } = await openRated(onTestFinished, 1_000);
    const { epoch } = await live(0, 'p0');
    await live(50, 'p1', { tally: tally(epoch, { accepted: 5 }) });
    const sick = await live(100, 'p0', { alarm });
    expect(sick).toMatchObject({ outageWhy: '', count: 0 });
    expect(sick.failsAlone).toBe(1);
    expect((await live(160, 'p1')).gap).toBeCloseTo(1);
  });

  test('opens where one process after the other fails: late answers of one in local backoff do not prevent it', async ({
    onTestFinished,
  }) => {
    const { live } = await openRated(onTestFinished, 1_000);
    const { epoch } = await live(0, 'p0');
    await live(50, 'p1', { tally: tally(epoch, { accepted: 5 }) });
    await live(100, 'p0', { alarm });
    await live(110, 'p0', { wants: false, tally: tally(epoch, { accepted: 5 }) });
    expect(await live(120, 'p1', { alarm })).toMatchObject({ failsAlone: 0, outageWhy: alarm.why });
  });

  test('opens for one whose last good answers came with its first bad ones, when the next is in trouble, too', async ({
    onTestFinished,
  }) => {
    const { live } = await openRated(onTestFinished, 1_000);
    const { epoch } = await live(0, 'p0');
    await live(50, 'p1', { tally: tally(epoch, { accepted: 5 }) });
    await live(100, 'p0', { alarm, tally: tally(epoch, { accepted: 5 }) });
    expect(await live(120, 'p1', { alarm })).toMatchObject({ failsAlone: 0, outageWhy: alarm.why });
  });

  test('learns nothing from what probes meet', async ({ onTestFinished }) => {
    const { live, state, broken } = await openBroken(onTestFinished);
    const { rate } = await state();
    expect(await live(700, 'p0', { tally: tally(broken.epoch, { refused: 1 }) })).toMatchObject({ closed: 'trouble' });
    expect(await state()).toMatchObject({ rate: { ...rate, lookedAtMs: startMs + 700 } });
  });

  test('does not open again for what was noticed before it closed', async ({ onTestFinished }) => {
    const { live, broken } = await openBroken(onTestFinished);
    await live(720, 'p0', { tally: tally(broken.epoch, { accepted: 1 }) });
    expect((await live(730, 'p1', { alarm, epoch: broken.epoch })).outageWhy).toBe('');
  });

  test('waits for the end of a hold, too', async ({ onTestFinished }) => {
    const { live } = await openBroken(onTestFinished);
    await live(200, 'p0', { hold: { ms: 4_000, why: 'Retry-After 4' } });
    expect((await live(3_000, 'p0')).count).toBe(0);
    expect((await live(4_300, 'p0')).count).toBe(1);
  });

  test('opens within 20 ms of an alarm, whenever the last update was', async ({ onTestFinished }) => {
    const { live } = await openRated(onTestFinished, 1_000);
    await live(0, 'p0');
    await live(100, 'p0');
    expect(await live(110, 'p0', { alarm })).toMatchObject({ turn: 0, closed: '' });
    expect(await live(120, 'p0')).toMatchObject({ closed: 'trouble', outageWhy: alarm.why });
  });

  test('opens where all processes together get nothing but refusals, and the first answer that is not one closes it', async ({
    onTestFinished,
  }) => {
    const { live } = await openRated(onTestFinished, 1_000);
    let last = await live(0, 'p0');
    const told = async (ms: number, process: string, counts: Parameters<typeof tally>[1]) => {
      last = await live(ms, process, { tally: tally(last.epoch, counts) });
    };
    for (const ms of [100, 200, 300]) await told(ms, 'p0', { accepted: 5 });
    await told(350, 'p1', { refused: 4 });
    await told(400, 'p0', { refused: 5 });
    expect(last).toMatchObject({ closed: '' });
    await told(500, 'p0', { refused: 4 });
    const dry = last;
    expect(dry).toMatchObject({ count: 0, closed: 'refused', dropEpoch: dry.epoch, unreachableAt: 0 });
    expect(await live(610, 'p1')).toMatchObject({ count: 1, closed: 'refused' });
    expect(await live(650, 'p1', { tally: tally(dry.epoch, { accepted: 1 }) })).toMatchObject({ closed: '' });
    expect((await live(760, 'p0')).count).toBeGreaterThan(0);
  });

  test('opens for a long wait that the server asked for, which is no outage: after its end one probe shows that it is over', async ({
    onTestFinished,
  }) => {
    const { live } = await openRated(onTestFinished, 1_000);
    await live(100, 'p0', { hold: { ms: 20_000, why: 'Retry-After 20' } });
    const held = await live(200, 'p0');
    expect(held).toMatchObject({ closed: 'held', outageAt: 0, outageWhy: '', holdWhy: 'Retry-After 20' });
    for (let ms = 300; ms < 20_100; ms += 300) expect((await live(ms, 'p0')).count).toBe(0);
    expect((await live(20_110, 'p0')).count).toBe(1);
    expect((await live(20_210, 'p1')).count).toBe(0);
    expect(await live(20_250, 'p0', { tally: tally(held.epoch, { accepted: 1 }) })).toMatchObject({ closed: '' });
    expect((await live(20_350, 'p1')).count).toBeGreaterThan(10);
  });
});

describe('an update of the state', () => {
  test('is due to one process at a time, with what all have seen', async ({ onTestFinished }) => {
    const { at } = await openRated(onTestFinished, 1_000);
    const { epoch } = await at(10, 'p0');
    expect((await at(40, 'p1', { tally: tally(epoch, { accepted: 3, refused: 1 }) })).turn).toBe(0);
    const { turn, seen } = await at(110, 'p0', { tally: tally('0', { accepted: 2 }) });
    expect(turn).toBeGreaterThan(1);
    expect(JSON.parse(seen)).toMatchObject({
      accepted: 5,
      refused: 1,
      currentAccepted: 3,
      currentRefused: 1,
      most: 128,
    });
    expect((await at(120, 'p1')).turn).toBe(0);
  });

  test('that comes too late changes nothing', async ({ onTestFinished }) => {
    const { at, learn } = await openRated(onTestFinished, 1_000);
    const first = await at(200, 'p0');
    const second = await at(400, 'p1');
    expect(await learn(first.turn, 1)).toBe(false);
    expect(await learn(second.turn, 2_000)).toBe(true);
    expect((await at(410, 'p0')).rate).toBe(2_000);
  });

  test('tells the time in which nothing might leave', async ({ onTestFinished }) => {
    const { at } = await openRated(onTestFinished, 1_000);
    await at(100, 'p0', { hold: { ms: 300, why: 'x' } });
    const { seen } = await at(600, 'p0');
    expect(JSON.parse(seen).blockedMs).toBeCloseTo(300, 0);
  });

  test('knows that a minute has passed without anybody', async ({ onTestFinished }) => {
    const { at } = await openRated(onTestFinished, 1_000);
    const { epoch } = await at(50, 'p0');
    await at(100, 'p0', { tally: tally(epoch, { accepted: 1 }) });
    const { seen } = await at(70_000, 'p0');
    expect(JSON.parse(seen).recall).toBe(1);
  });

  test('that finds a far lower rate takes leases back', async ({ onTestFinished }) => {
    const { at, learn } = await openRated(onTestFinished, 1_000);
    await at(10, 'p0');
    const { turn, epoch } = await at(200, 'p1');
    await learn(turn, 100, { drops: true });
    const reply = await at(210, 'p0');
    expect(Number(reply.dropEpoch)).toBeGreaterThan(Number(epoch));
    expect(reply.dropEpoch).toBe(reply.epoch);
  });
});

test('what the headers of the server say lowers the rate once it was right for a while', async ({ onTestFinished }) => {
  const { live, at } = await openRated(onTestFinished, 1_000);
  const rates: number[] = [];
  const { epoch } = await live(0, 'p0');
  for (let ms = 100; ms <= 3_000; ms += 100) {
    const claim = { remaining: 400 - ms / 10, quota: null, forMs: 10_000 - ms };
    rates.push((await live(ms, 'p0', { claim, tally: tally(epoch, { accepted: 10 }) })).rate);
  }
  expect(rates[12]).toBeLessThan(200); // until it is known, half of what is left lasts that long
  expect(rates[29]).toBeCloseTo(100 / 6.5, 0);
  const { seen } = await at(3_100, 'p1', { claim: { remaining: 90, quota: 400, forMs: 6_900 } });
  expect(JSON.parse(seen)).toMatchObject({ claim: { remaining: 90, quota: 400, endsAt: startMs + 10_000 } });
});

test('requests in flight are shared among the processes', async ({ onTestFinished }) => {
  const { at, learn } = await openRated(onTestFinished, 1_000);
  await at(10, 'p0');
  await at(20, 'p1');
  const { turn } = await at(200, 'p2');
  await learn(turn, 1_000, { inFlight: 20 });
  const shares = [await at(210, 'p0'), await at(220, 'p1'), await at(230, 'p2')].map((reply) => reply.inFlightShare);
  expect(shares.reduce((sum, share) => sum + share, 0)).toBe(20);
  expect(Math.max(...shares) - Math.min(...shares)).toBeLessThanOrEqual(1);
});

test.each([
  [110, [10, 100]], // all of them
  [55, [5, 50]],
  [11, [1, 10]],
])('%i requests in flight are divided by the connections of the processes', async (inFlight, expected) => {
  const { at, learn } = await openRated(onTestFinished, 1_000);
  const few = { connections: 10 };
  const many = { connections: 100 };
  await at(10, 'p0', few);
  const { turn } = await at(200, 'p1', many);
  await learn(turn, 1_000, { inFlight });
  const shares = [await at(210, 'p0', few), await at(220, 'p1', many)].map((reply) => reply.inFlightShare);
  expect(shares).toEqual(expected);
});

describe('how long nothing was accepted', () => {
  const minute = 60_000;
  /** Calls every half a minute, or every ten seconds, from `from` to `to`, in minutes. */
  const during = async (
    fleet: ReturnType<typeof openFleet>,
    [from, to]: [number, number],
    wish: (epoch: string) => Partial<TargetCall>,
  ) => {
    for (let ms = from * minute; ms <= to * minute; ms += sized(30_000, 10_000)) {
      const epoch = (await redis.hget(fleet.keys.limiter, 'epoch')) ?? '1';
      await fleet.live(ms, 'p', wish(epoch));
    }
  };
  const refusedAll = (epoch: string) => ({ tally: tally(epoch, { refused: 3 }) });
  const stalled = async ({ fp }: { fp: string }) => (await readTargetState(redis, fp))!.stalled;

  test('counts refusals without end, until something is accepted', async ({ onTestFinished }) => {
    const fleet = openFleet(onTestFinished);
    await during(fleet, [0, 14], refusedAll);
    expect(await stalled(fleet)).toBeNull();
    await during(fleet, [14.5, 20], refusedAll);
    expect(await stalled(fleet)).toEqual({ since: startMs, ms: 20 * minute });
    await fleet.live(20.5 * minute, 'p', { tally: tally('1', { accepted: 1 }) });
    expect(await stalled(fleet)).toBeNull();
  });

  test('counts waits that the server asked for', async ({ onTestFinished }) => {
    const fleet = openFleet(onTestFinished);
    const hold = { ms: 600_000, why: 'asked' };
    await fleet.live(0, 'p', { ...refusedAll('1'), hold });
    await during(fleet, [0.5, 10], () => ({ wants: false })); // as processes say while they are held
    await fleet.live(10.5 * minute, 'p', { ...refusedAll('1'), hold });
    await during(fleet, [11, 16], () => ({ wants: false }));
    expect(await stalled(fleet)).toMatchObject({ ms: 16 * minute });
  });

  test('counts neither a stop, nor time without work, nor a quota that is spent', async ({ onTestFinished }) => {
    const stopped = openFleet(onTestFinished);
    await during(stopped, [0, 5], refusedAll);
    await redis.set(stopped.keys.stop, storedStop({ by: 'operator', who: 'ana', reason: '', at: 1 }));
    await during(stopped, [5.5, 30], () => ({}));
    expect(await stalled(stopped)).toBeNull();
    const idle = openFleet(onTestFinished);
    await during(idle, [0, 10], refusedAll);
    await during(idle, [11, 30], () => ({ wants: false }));
    await during(idle, [31, 40], refusedAll);
    expect(await stalled(idle)).toBeNull();
    const quota = openFleet(onTestFinished);
    await quota.limit('1000/s,1/day');
    await during(quota, [0, 30], refusedAll);
    expect(await stalled(quota)).toBeNull();
  });
});
