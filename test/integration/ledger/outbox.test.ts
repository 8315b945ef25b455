import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import {
  addEvent,
  moveCursor,
  type OutboxEvent,
  outboxKeys,
  publishTrouble,
  readCursor,
  readEvents,
  readPublishedTroubles,
  readRefusals,
  storeRefusals,
} from '../../../src/ledger/outbox.ts';
import { keys } from '../../../src/redis/keys.ts';
import { redisDuringTests } from '../../support/redis.ts';
import { expectKept } from '../../support/redis-keys.ts';

let fp: string;
const redis = await redisDuringTests();
beforeEach(() => {
  fp = `test-${randomUUID()}`;
});
afterEach(async () => {
  const receivers = ['a', 'b'].flatMap((name) => [keys.outboxCursor(fp, name), keys.outboxRefusals(fp, name)]);
  await redis.unlink(...outboxKeys(fp), keys.outages(fp), ...receivers);
});

const day = 86_400_000;
const event = (id: string, text = id): OutboxEvent => ({
  id,
  type: 'run.completed',
  timestamp: '2026-11-23T00:00:00.000Z',
  data: { run: id },
  text,
});
const add = async (...ids: string[]) => {
  for (const id of ids) await addEvent(redis, fp, event(id));
};
const idsAfter = async (n: number, most = 100) => (await readEvents(redis, fp, n, most)).map(({ event: { id } }) => id);

describe('the outbox of a target', () => {
  test('has each event once and whole, in the order in which they came', async () => {
    await add('one', 'two');
    await addEvent(redis, fp, event('one', 'told otherwise'));
    await add('three');
    const found = await readEvents(redis, fp, 0, 100);
    expect(found.map((each) => each.event)).toEqual([event('one'), event('two'), event('three')]);
    const numbers = found.map(({ n }) => n);
    expect(numbers).toEqual(numbers.toSorted((a, b) => a - b));
    expect(new Set(numbers).size).toBe(3);
  });

  test('is read from a number on, so many events at once', async () => {
    await add('one', 'two', 'three', 'four');
    const [first] = await readEvents(redis, fp, 0, 1);
    expect([first!.event.id, await idsAfter(first!.n, 2)]).toEqual(['one', ['two', 'three']]);
    expect(await idsAfter(Number.MAX_SAFE_INTEGER)).toEqual([]);
  });

  test('has the last thousand, of the last day', async () => {
    await add('of yesterday');
    const now = Date.now();
    await redis.zadd(keys.outbox(fp), (now - day - 60_000) * 1_000, 'of yesterday');
    const pipeline = redis.pipeline();
    for (let n = 0; n < 1_000; n++) {
      pipeline.zadd(keys.outbox(fp), (now - 60_000) * 1_000 + n, `e${n}`);
      pipeline.hset(keys.outboxEvents(fp), `e${n}`, JSON.stringify(event(`e${n}`)));
    }
    await pipeline.exec();
    await add('last');
    const ids = await idsAfter(0, 2_000);
    expect([ids.length, ids[0], ids.at(-1)]).toEqual([1_000, 'e1', 'last']);
    expect(await redis.hlen(keys.outboxEvents(fp))).toBe(1_000);
    for (const key of outboxKeys(fp)) await expectKept(redis, key, day);
  });

  test('numbers events upwards though the clock of Redis goes back', async () => {
    const future = (Date.now() + 3_600_000) * 1_000;
    await redis.zadd(keys.outbox(fp), future, 'of a clock that was ahead');
    await add('now');
    expect((await readEvents(redis, fp, future, 10)).map(({ n }) => n)).toEqual([future + 1]);
  });
});

describe('a receiver', () => {
  test('that is new begins with the next event, and keeps its place beside another', async () => {
    await add('before');
    const begin = await readCursor(redis, fp, 'a');
    await add('one', 'two');
    expect(await idsAfter(begin)).toEqual(['one', 'two']);
    const [one] = await readEvents(redis, fp, begin, 1);
    await moveCursor(redis, fp, 'a', one!.n);
    expect(await idsAfter(await readCursor(redis, fp, 'a'))).toEqual(['two']);
    await moveCursor(redis, fp, 'a', begin);
    expect(await readCursor(redis, fp, 'a')).toBe(one!.n);
    expect(await idsAfter(await readCursor(redis, fp, 'b'))).toEqual([]);
    for (const name of ['a', 'b']) await expectKept(redis, keys.outboxCursor(fp, name), 30 * day);
  });

  test('that refuses an event is known to every worker, for a day', async () => {
    expect(await readRefusals(redis, fp, 'a')).toEqual({ n: 0, count: 0, until: 0 });
    const refusals = { n: 17, count: 3, until: 1_800_000_000_000 };
    await storeRefusals(redis, fp, 'a', refusals);
    expect(await readRefusals(redis, fp, 'a')).toEqual(refusals);
    expect(await readRefusals(redis, fp, 'b')).toEqual({ n: 0, count: 0, until: 0 });
    await expectKept(redis, keys.outboxRefusals(fp, 'a'), day);
  });
});

test('an outage is told once when it begins and once when it ends, whoever sees it', async () => {
  const tell = (from: number | null, to: number | null, id: string) =>
    publishTrouble(redis, fp, 'outage', { from, to }, event(id));
  await tell(null, 1_000, 'it began');
  await tell(null, 1_007, 'as another process saw it');
  expect(await readPublishedTroubles(redis, fp)).toEqual({ outage: 1_000, stall: null });
  await tell(1_000, null, 'it ended');
  await tell(1_000, null, 'as another process saw it');
  expect(await readPublishedTroubles(redis, fp)).toEqual({ outage: null, stall: null });
  expect(await idsAfter(0)).toEqual(['it began', 'it ended']);
});
