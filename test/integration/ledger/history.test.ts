import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { eventsMax, firstSampleMs, samplesMax } from '../../../src/ledger/history.lua.ts';
import { noteHistory, readHistory, waitsIn } from '../../../src/ledger/history.ts';
import { openLedger } from '../../../src/ledger/ledger.ts';
import { addMeasures } from '../../../src/ledger/measures.ts';
import { readRun } from '../../../src/ledger/run.ts';
import { haltRules } from '../../../src/ledger/thresholds.ts';
import type { RedisClient } from '../../../src/redis/client.ts';
import { keys } from '../../../src/redis/keys.ts';
import { openTestRedis } from '../../support/redis.ts';
import { forgetRun, writeTestRun } from './lone-run.ts';

let redis: RedisClient;
let id: string;
beforeAll(async () => {
  redis = await openTestRedis();
});
afterAll(() => redis.disconnect());
beforeEach(async () => {
  id = await writeTestRun(redis, [3]);
  await steer('start');
});
afterEach(() => forgetRun(redis, id));

const order = { by: 'operator', who: 'ana', reason: 'the release' } as const;

function steer(action: 'start' | 'pause') {
  return openLedger(redis, haltRules).steer(id, Date.now(), { action, ...order });
}

const history = async () => readHistory(redis, (await readRun(redis, id))!);
const note = (hold = '', limit: number | null = null) => noteHistory(redis, id, { hold, limit });

/** What was noted last was long ago, so the next call notes again. */
const later = () => redis.hset(keys.measures(id), { sampledAt: 0, heldAt: 0 });

/** The bytes that Redis takes for it. */
async function memory(): Promise<number> {
  const usage = await Promise.all([keys.history(id), keys.historyEvents(id)].map((key) => redis.memory('USAGE', key)));
  return usage.reduce<number>((all, bytes) => all + (bytes ?? 0), 0);
}

describe('the history of a run', () => {
  test('takes less than 64 KB however long the run is, and loses nothing of its sums', async () => {
    const calls = 5 * samplesMax;
    for (let n = 1; n <= calls; n++) {
      const latencies = Array.from({ length: 160 }, (_, bucket) => [`l${bucket}`, 1e6 + bucket] as const);
      await addMeasures(redis, id, new Map([['requests', 7], ['busyMs', 1e9], ...latencies]));
      await redis.hincrby(keys.run(id), 'deleted', 6);
      await later();
      await note(n % 2 === 0 ? '' : `"\u2028\\ü${'"/é'.repeat(200)}`, n % 2 === 0 ? 10 * n ** 3 : 1);
    }
    expect(await redis.llen(keys.history(id))).toBeLessThan(samplesMax);
    expect(await redis.llen(keys.historyEvents(id))).toBeLessThanOrEqual(eventsMax);
    expect(await memory()).toBeLessThan(65_536);
    const { points, events } = await history();
    expect(points.length).toBeGreaterThanOrEqual(samplesMax / 2);
    expect(points.reduce((sum, { requests }) => sum + requests, 0)).toBe(7 * calls);
    expect(points.reduce((sum, { counts }) => sum + counts.deleted!, 0)).toBe(6 * calls);
    expect(events.filter(({ event }) => event === 'waiting').length).toBeGreaterThan(10);
    expect(Number(await redis.hget(keys.measures(id), 'sampleMs'))).toBeGreaterThanOrEqual(8 * firstSampleMs);
  });

  test('has one sample and one event, however many processes see the same', async () => {
    await Promise.all(Array.from({ length: 20 }, () => note('the server answered 429', 50)));
    expect(await redis.llen(keys.history(id))).toBe(1);
    expect((await history()).events.map(({ text }) => text)).toEqual([
      'running by ana: the release',
      'waiting: the server answered 429',
    ]);
  });

  test('tells of waits, of rates that are quite another, and of changes of state, in their order', async () => {
    await note('', 100);
    await later();
    await note('', 120);
    await note('the server answered 429');
    await later();
    await note('', 40);
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
    const waits = async () => waitsIn((await history()).events).waits.map(({ text }) => text);
    expect(await waits()).toEqual(expect.arrayContaining(longest));
    expect((await waits()).length).toBeGreaterThan(eventsMax / 2 - 2);
    for (let n = 0; n < 60; n++) await note('', n % 2 === 0 ? 100 : 1_000 + n);
    expect(await waits()).toEqual(expect.arrayContaining(longest));
    expect((await waits()).length).toBeGreaterThan(eventsMax / 4 - 2);
    expect((await history()).events.at(-1)!.text).toBe('allowed rate: 1,059/s');
    expect(await redis.llen(keys.historyEvents(id))).toBeLessThanOrEqual(eventsMax);
  });

  test('counts the chunks that were taken over from a process that is gone', async () => {
    const ledger = openLedger(redis, haltRules);
    await ledger.feed(id);
    await ledger.claim(id, 0);
    expect((await history()).events.some(({ event }) => event === 'takeover')).toBe(false);
    await ledger.claim(id, 0);
    const { points, events } = await history();
    expect(points.reduce((sum, { takeovers }) => sum + takeovers, 0)).toBe(1);
    expect(events.at(-1)!.text).toBe('chunks taken over from a process that is gone: 1');
  });

  test('goes with the record of the run', async () => {
    await redis.pexpire(keys.run(id), 60_000);
    await note('held');
    for (const key of [keys.history(id), keys.historyEvents(id), keys.measures(id)])
      expect(await redis.pttl(key)).toBeGreaterThan(0);
    await redis.del(keys.history(id), keys.historyEvents(id), keys.measures(id));
    await redis.rename(keys.run(id), keys.details(id));
    await note('held');
    expect(await redis.exists(keys.history(id), keys.historyEvents(id), keys.measures(id))).toBe(0);
    await redis.rename(keys.details(id), keys.run(id));
  });
});
