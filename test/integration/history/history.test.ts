import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { binsMax, eventsMax, latencyBuckets, sliceSums } from '../../../src/history/history.lua.ts';
import { noteHistory, readHistory, separateWaits } from '../../../src/history/history.ts';
import type { Slice } from '../../../src/history/history-points.ts';
import { changeRules } from '../../../src/ledger/change-rules.ts';
import { openLedger } from '../../../src/ledger/ledger.ts';
import { readRun } from '../../../src/ledger/run.ts';
import { parseRate } from '../../../src/model/rate.ts';
import { keys } from '../../../src/redis/keys.ts';
import { redisDuringTests } from '../../support/redis.ts';
import { forgetRun, writeTestRun } from '../ledger/lone-run.ts';

let id: string;
const redis = await redisDuringTests();
beforeEach(async () => {
  id = await writeTestRun(redis, [3]);
  await steer('start');
});
afterEach(() => forgetRun(redis, id));

const author = { by: 'operator', who: 'ana', reason: 'the release' } as const;

function steer(action: 'start' | 'pause') {
  return openLedger(redis).steer(id, Date.now(), { action, ...author });
}

const history = async () => readHistory(redis, (await readRun(redis, id))!);
const note = (hold = '', limit: number | null = null, slices: Slice[] = []) =>
  noteHistory(redis, id, { hold, limit, slices });

/** What was noted last was long ago, so the next call notes again. */
const later = () => redis.hset(keys.measures(id), { heldAt: 0 });

/** What a process did in one second. */
function slice(second: number, sums: Partial<Slice>, latency = 0): Slice {
  const none = Object.fromEntries(sliceSums.map((name) => [name, 0])) as Record<(typeof sliceSums)[number], number>;
  return { ...none, ...sums, second, latencies: new Array<number>(latencyBuckets).fill(latency) };
}

/** The second of now by the clock of Redis, which is also that of this machine. The run started long before. */
async function longAgoStarted(): Promise<number> {
  const now = Math.floor(Date.now() / 1_000);
  await redis.hset(keys.run(id), 'startedAt', 1_000 * (now - 100_000));
  return now;
}

/** The bytes that Redis takes for it. */
async function memory(): Promise<number> {
  const usage = await Promise.all([keys.history(id), keys.historyEvents(id)].map((key) => redis.memory('USAGE', key)));
  return usage.reduce<number>((all, bytes) => all + (bytes ?? 0), 0);
}

describe('the history of a run', () => {
  /**
   * @invariant bounded-history: A history stays below 64 KB and adds up to the counters. A page stays below 1 MB and loads nothing,
   * whatever the ids are.
   */
  test('takes less than 64 KB however long the run is, and loses nothing of its sums', async () => {
    const calls = 5 * binsMax;
    const now = await longAgoStarted();
    for (let n = 1; n <= calls; n++) {
      await redis.hincrby(keys.run(id), 'deleted', 6);
      await later();
      const hold = n % 2 === 0 ? '' : `"\u2028\\ü${'"/é'.repeat(200)}`;
      const sums = { requests: 7, busyMs: 1e9, deleted: 6 };
      await note(hold, n % 2 === 0 ? 10 * n ** 3 : 1, [slice(now - calls + n, sums, 1e6)]);
    }
    expect(await redis.hlen(keys.history(id))).toBeLessThanOrEqual(binsMax);
    expect(await redis.llen(keys.historyEvents(id))).toBeLessThanOrEqual(eventsMax);
    expect(await memory()).toBeLessThan(65_536);
    const { points, events } = await history();
    expect(points.length).toBeGreaterThanOrEqual(binsMax / 2);
    expect(points.reduce((sum, { requests }) => sum + requests, 0)).toBe(7 * calls);
    expect(points.reduce((sum, { counts }) => sum + counts.deleted!, 0)).toBe(6 * calls);
    expect(new Set(points.map(({ from, to }) => to - from))).toEqual(new Set([8_000]));
    expect(points[20]).toMatchObject({ from: points[0]!.from + 160_000, requests: 56 });
    expect(events.filter(({ event }) => event === 'waiting').length).toBeGreaterThan(10);
  });

  test('adds what several processes did in the same second, whenever they say so', async () => {
    const now = await longAgoStarted();
    await note('', null, [
      slice(now - 20, { requests: 60, deleted: 58 }),
      slice(now - 19, { requests: 61, refused: 2 }),
    ]);
    await note('', null, [slice(now - 20, { requests: 40, deleted: 40 })]);
    await note('', null, [slice(now - 21, { requests: 5 })]);
    await redis.hset(keys.run(id), 'deleted', 98);
    expect(
      (await history()).points.map(({ from, to, requests, refused, counts }) => [
        from,
        to,
        requests,
        refused,
        counts.deleted,
      ]),
    ).toEqual([
      [1_000 * (now - 21), 1_000 * (now - 20), 5, 0, 0],
      [1_000 * (now - 20), 1_000 * (now - 19), 100, 0, 98],
      [1_000 * (now - 19), 1_000 * (now - 18), 61, 2, 0],
    ]);
  });

  test('holds nothing from before the run or from the future, whatever a clock says', async () => {
    const now = await longAgoStarted();
    await note('', null, [slice(7, { requests: 1 }), slice(now + 5_000, { requests: 2 })]);
    const { points } = await history();
    expect(points.map(({ requests }) => requests)).toEqual([1, 2]);
    expect(points[0]!.from).toBe(1_000 * (now - 100_000));
    expect(points[1]!.from).not.toBe(1_000 * (now + 5_000));
  });

  test('has one event, however many processes see the same', async () => {
    await Promise.all(Array.from({ length: 20 }, () => note('the server answered 429', 50)));
    expect((await history()).events.map(({ text }) => text)).toEqual([
      'running by ana: the release',
      'waiting: the server answered 429',
    ]);
  });

  test('tells of waits, of rates that are quite another, and of changes of state, in their author', async () => {
    await note('', 100);
    await later();
    await note('', 120);
    await note('the server answered 429');
    await later();
    await note('', 40);
    await sleep(2); // events of one millisecond have no order
    await steer('pause');
    expect((await history()).events.map(({ event, text }) => `${event} ${text}`)).toEqual([
      'state running by ana: the release',
      'rate allowed rate: 100/s',
      'waiting waiting: the server answered 429',
      'resumed sending again',
      'rate allowed rate: 40/s',
      'state paused by ana: the release',
    ]);
  });

  test('tells to which rate a person set it', async () => {
    const run = (await readRun(redis, id))!;
    const rate = parseRate('50/s,1000/day');
    const changed = await changeRules(redis, run, { rate }, { at: Date.now(), ...author });
    await changeRules(redis, changed, { rate: null }, { at: Date.now() + 1, ...author });
    const set = (await history()).events.filter(({ event }) => event === 'rate_set').map(({ text }) => text);
    expect(set).toEqual(['rate 50/s,1000/day set by ana: the release', 'rate none set by ana: the release']);
  });

  test('keeps the longest of many waits, and the last rates', async () => {
    const wait = async (reason: string, ms: number) => {
      await later();
      await note(reason);
      const [text] = (await redis.lrange(keys.historyEvents(id), -1, -1)) as [string];
      const noted = JSON.parse(text);
      await redis.lset(keys.historyEvents(id), -1, JSON.stringify({ ...noted, at: noted.at - ms }));
      await later();
      await note('');
    };
    await wait('the API answers 503 to everything', 60_000);
    for (let n = 0; n < 60; n++) await wait('the server answered 429', 1_000 + n);
    await wait('somebody stopped it', 5_000);
    const longest = ['the API answers 503 to everything', 'somebody stopped it'];
    const waits = async () => separateWaits((await history()).events).waits.map(({ text }) => text);
    expect(await waits()).toEqual(expect.arrayContaining(longest));
    expect((await waits()).length).toBeGreaterThan(eventsMax / 2 - 2);
    for (let n = 0; n < 60; n++) await note('', n % 2 === 0 ? 100 : 1_000 + n);
    expect(await waits()).toEqual(expect.arrayContaining(longest));
    expect((await waits()).length).toBeGreaterThan(eventsMax / 4 - 2);
    expect((await history()).events.at(-1)!.text).toBe('allowed rate: 1,059/s');
    expect(await redis.llen(keys.historyEvents(id))).toBeLessThanOrEqual(eventsMax);
  });

  test('counts the chunks that were taken over from a process that is gone', async () => {
    const ledger = openLedger(redis);
    await ledger.enqueue(id);
    await ledger.claim(id, 0);
    expect((await history()).events.some(({ event }) => event === 'takeover')).toBe(false);
    await ledger.claim(id, 0);
    const { points, events } = await history();
    expect(points.reduce((sum, { takeovers }) => sum + takeovers, 0)).toBe(1);
    expect(events.at(-1)!.text).toBe('chunks taken over from a process that is gone: 1');
  });

  test('goes with the record of the run', async () => {
    await redis.pexpire(keys.run(id), 60_000);
    await note('held', null, [slice(await longAgoStarted(), { requests: 1 })]);
    for (const key of [keys.history(id), keys.historyEvents(id), keys.measures(id)])
      expect(await redis.pttl(key)).toBeGreaterThan(0);
    await redis.del(keys.history(id), keys.historyEvents(id), keys.measures(id));
    await redis.rename(keys.run(id), keys.details(id));
    await note('held');
    expect(await redis.exists(keys.history(id), keys.historyEvents(id), keys.measures(id))).toBe(0);
    await redis.rename(keys.details(id), keys.run(id));
  });
});
