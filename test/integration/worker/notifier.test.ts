import { describe, expect, test, vi } from 'vitest';
import { markPublished } from '../../../src/ledger/changes.ts';
import { addEvent, type OutboxEvent, readCursor, readEvents } from '../../../src/ledger/outbox.ts';
import { readRun } from '../../../src/ledger/run.ts';
import { control, type TargetControl } from '../../../src/limiter/learning/control.ts';
import type { Sums } from '../../../src/limiter/learning/sums.ts';
import { storedStop } from '../../../src/limiter/stop.ts';
import { limiterKeys, openTargetCalls, type TargetCall } from '../../../src/limiter/target-call.ts';
import { openReceivers } from '../../../src/notify/receivers.ts';
import { receiverKey } from '../../../src/notify/webhook.ts';
import { keys } from '../../../src/redis/keys.ts';
import { publishChanges, publishOutages } from '../../../src/worker/event-sources.ts';
import { Notifier } from '../../../src/worker/notifier.ts';
import { notifyingParts } from '../../../src/worker/notifying.ts';
import { Parts } from '../../../src/worker/parts.ts';
import type { AtEnd } from '../../support/harness.ts';
import { until } from '../../support/processes.ts';
import { openReceiver, type ReceiverServer } from '../../support/receiver.ts';
import { quietCall } from '../../support/target-call.ts';
import { openLoneTarget } from './lone-target.ts';

/** What a receiver took, in the order in which it took it. */
function taken({ received }: ReceiverServer): { id: string; type: string }[] {
  const good = received.filter(({ status }) => status === 200);
  return good.map(({ headers, body }) => ({ id: String(headers['webhook-id']), ...JSON.parse(body) }));
}

function receiversOf(...notify: string[]) {
  return openReceivers({ notify, notifySecretFile: undefined, proxy: undefined, allowHttp: undefined }, {});
}

/** A target without processes, and notifiers with a clock that the test sets. */
async function openStage(atEnd: AtEnd) {
  const stage = await openLoneTarget(atEnd);
  const { redis, fp, log, clock } = stage;
  const notifier = async (url: string) => {
    const [receiver] = receiversOf(url);
    const made = new Notifier({ redis, fp, receiver: receiver!, log, now: () => clock.now, random: () => 0 });
    await made.post(); // it begins at the end
    return made;
  };
  let events = 0;
  const add = async (id = `e-${++events}`) => {
    const event: OutboxEvent = { id, type: 'test', timestamp: new Date().toISOString(), data: {}, text: id };
    await addEvent(redis, fp, event);
  };
  return { ...stage, notifier, add };
}

/** @invariant events-once */
test('a receiver that is away or hangs holds up no other, which is told of an outage and of its end', async ({
  onTestFinished,
}) => {
  const { redis, target, fp, log } = await openStage(onTestFinished);
  const [good, slow] = [await openReceiver(onTestFinished), await openReceiver(onTestFinished)];
  slow.answer = () => 'nothing';
  const receivers = receiversOf('http://127.0.0.1:9', slow.url, good.url);
  await Promise.all(receivers.map(({ key }) => readCursor(redis, fp, key)));
  const runs = async () => [];
  const parts = new Parts(notifyingParts({ redis, target, receivers, dashboardUrl: '', runs, log }), log);
  onTestFinished(() => parts.drain());
  const outage = { seenAt: Date.now(), closed: 'unreachable', closedWhy: 'connection refused', closedAt: 1_000 };
  await redis.hset(keys.limiter(fp), outage);
  await parts.start(new AbortController().signal);
  await until('the outage is told', () => taken(good).length === 1);
  await redis.hset(keys.limiter(fp), 'closed', '');
  await until('its end is told', () => taken(good).length === 2);
  expect(taken(good).map(({ type }) => type)).toEqual(['target.outage', 'target.recovered']);
});

describe('an event', () => {
  /** @invariant events-once */
  test('is posted once, though several workers post to the same receiver', async ({ onTestFinished }) => {
    const { notifier, add } = await openStage(onTestFinished);
    const receiver = await openReceiver(onTestFinished);
    const workers = await Promise.all(Array.from({ length: 4 }, () => notifier(receiver.url)));
    for (let n = 0; n < 30; n++) await add();
    await until('all are taken', async () => {
      await Promise.all(workers.map((worker) => worker.post()));
      return taken(receiver).length >= 30;
    });
    expect(taken(receiver).map(({ id }) => id)).toEqual(Array.from({ length: 30 }, (_, n) => `e-${n + 1}`));
  });

  test('is not posted by a process that wakes when another one has posted it and those before', async ({
    onTestFinished,
  }) => {
    const { redis, fp, notifier, add } = await openStage(onTestFinished);
    const receiver = await openReceiver(onTestFinished);
    const [suspended, other] = [await notifier(receiver.url), await notifier(receiver.url)];
    await add();
    await add();
    onTestFinished(() => void vi.restoreAllMocks());
    const now = performance.now.bind(performance);
    receiver.answer = async () => {
      receiver.answer = () => 200;
      vi.spyOn(performance, 'now').mockImplementation(() => now() + 16_000);
      await redis.del(keys.outboxLease(fp, receiverKey(receiver.url))); // it has expired meanwhile
      await other.post();
      return 200;
    };
    await suspended.post();
    expect(taken(receiver).map(({ id }) => id)).toEqual(['e-1', 'e-2', 'e-1']); // one was on its way
  });

  test('is posted again until a receiver takes it that fails ten times, always with the same id, before the next', async ({
    onTestFinished,
  }) => {
    const { notifier, add, clock, told } = await openStage(onTestFinished);
    const receiver = await openReceiver(onTestFinished);
    receiver.answer = () => (receiver.received.length < 10 ? 500 : 200);
    const worker = await notifier(receiver.url);
    await add();
    await add();
    for (let n = 0; n < 10; n++) {
      await worker.post();
      await worker.post(); // it waits
      expect(receiver.received).toHaveLength(n + 1);
      clock.now += 600_000;
    }
    await worker.post();
    expect(receiver.received.map(({ headers }) => headers['webhook-id'])).toEqual([...Array(11).fill('e-1'), 'e-2']);
    expect(told).toHaveLength(1);
    expect(told[0]).toMatch(/^an event was not posted, trying again .*it answers 500/);
  });

  test('that a receiver refuses is skipped after five tries, so that the next ones come', async ({
    onTestFinished,
  }) => {
    const { notifier, add, clock, told } = await openStage(onTestFinished);
    const receiver = await openReceiver(onTestFinished);
    receiver.answer = ({ headers }) => (headers['webhook-id'] === 'e-1' ? 400 : 200);
    const worker = await notifier(receiver.url);
    await add();
    await add();
    for (let n = 0; n < 5; n++) {
      await worker.post();
      clock.now += 600_000;
    }
    expect(receiver.received.map(({ status }) => status)).toEqual([400, 400, 400, 400, 400, 200]);
    expect(told.at(-1)).toMatch(/^an event was refused and is not posted again .*"event":"e-1"/);
  });

  test('that a receiver refuses is posted five times in all by several workers, with the same waits as by one', async ({
    onTestFinished,
  }) => {
    const { notifier, add, clock, told } = await openStage(onTestFinished);
    const receiver = await openReceiver(onTestFinished);
    receiver.answer = ({ headers }) => (headers['webhook-id'] === 'e-1' ? 400 : 200);
    const workers = [await notifier(receiver.url), await notifier(receiver.url), await notifier(receiver.url)];
    await add();
    await add();
    for (let n = 0; n < 5; n++) {
      for (const worker of [...workers.slice(n % 3), ...workers]) await worker.post();
      expect(receiver.received).toHaveLength(n < 4 ? n + 1 : 6);
      clock.now += 600_000;
    }
    expect(receiver.received.map(({ status }) => status)).toEqual([400, 400, 400, 400, 400, 200]);
    expect(told.filter((line) => line.startsWith('an event was refused'))).toHaveLength(1);
  });

  test('of a time without workers is posted by the next one, and a new receiver gets none of them', async ({
    onTestFinished,
  }) => {
    const { redis, fp, notifier, add } = await openStage(onTestFinished);
    const [receiver, late] = [await openReceiver(onTestFinished), await openReceiver(onTestFinished)];
    await notifier(receiver.url); // which is killed
    await add();
    await (await notifier(receiver.url)).post();
    await (await notifier(late.url)).post();
    expect([taken(receiver).length, taken(late).length]).toEqual([1, 0]);
    await add('e-1'); // a worker that did not know that it had added it
    await (await notifier(receiver.url)).post();
    expect(taken(receiver)).toHaveLength(1);
    expect(await redis.pttl(keys.outboxCursor(fp, receiverKey(receiver.url)))).toBeGreaterThan(29 * 86_400_000);
  });

  test('gets a higher number than all before, also after the outbox was empty', async ({ onTestFinished }) => {
    const { redis, fp, add } = await openStage(onTestFinished);
    const before = await readCursor(redis, fp, 'someone');
    await add();
    await redis.del(keys.outbox(fp), keys.outboxEvents(fp));
    await add();
    await add();
    const numbers = (await readEvents(redis, fp, before, 10)).map(({ n }) => n);
    expect(numbers).toHaveLength(2);
    expect(numbers[1]).toBeGreaterThan(numbers[0]!);
  });
});

test('the changes of a run reach the outbox once, though the worker that passes them on dies half-way', async ({
  onTestFinished,
}) => {
  const { redis, fp, start, steer } = await openStage(onTestFinished);
  const run = await start(3);
  await steer(run, 'pause');
  await steer(run, 'start');
  const changes = Number(await redis.hget(keys.run(run), 'changes'));
  expect(changes).toBe(3);
  const pass = async (published: number) => publishChanges(redis, (await readRun(redis, run))!, { changes, published });
  await pass(0);
  await markPublished(redis, run, 1); // as if it had died before it noted the others
  await pass(1);
  const ids = (await readEvents(redis, fp, 0, 10)).map(({ event }) => event.id);
  expect(ids).toEqual([1, 2, 3].map((n) => `run-${run}-${n}`));
  expect(await redis.hget(keys.run(run), 'published')).toBe('3');
});

test('an outage is told once by several workers, and so is its end', async ({ onTestFinished }) => {
  const { redis, target, fp } = await openStage(onTestFinished);
  const limiter = keys.limiter(fp);
  const look = () => Promise.all([1, 2, 3].map(() => publishOutages(redis, target)));
  const types = async () => (await readEvents(redis, fp, 0, 10)).map(({ event }) => event.type);
  await redis.hset(limiter, {
    seenAt: Date.now(),
    closed: 'unreachable',
    closedWhy: 'connection refused',
    closedAt: 1_000,
  });
  await look();
  await look();
  expect(await types()).toEqual(['target.outage']);
  await redis.hset(limiter, 'closed', '');
  await look();
  await look();
  expect(await types()).toEqual(['target.outage', 'target.recovered']);
  expect(await redis.exists(keys.outages(fp))).toBe(0);
});

test('that nothing was accepted for a quarter of an hour is told once by several workers', async ({
  onTestFinished,
}) => {
  const { redis, target, fp } = await openStage(onTestFinished);
  const limiter = keys.limiter(fp);
  const look = () => Promise.all([1, 2, 3].map(() => publishOutages(redis, target)));
  const types = async () => (await readEvents(redis, fp, 0, 10)).map(({ event }) => event.type);
  await redis.hset(limiter, {
    seenAt: Date.now(),
    wantedAt: Date.now(),
    drySince: 1_000,
    dryMs: 899_000,
    dryAnswers: 9,
  });
  await look();
  expect(await types()).toEqual([]);
  await redis.hset(limiter, { dryMs: 900_000 });
  await look();
  await redis.hset(limiter, { dryMs: 950_000 });
  await look();
  expect(await types()).toEqual(['target.stalled']);
  await redis.hset(limiter, { drySince: 5_000, dryMs: 0, dryAnswers: 0, isAccepting: 1 });
  await look();
  await look();
  expect(await types()).toEqual(['target.stalled', 'target.recovered']);
  expect(await redis.exists(keys.outages(fp))).toBe(0);
});

test('an outage is told once, though the target is stopped and started while it lasts', async ({ onTestFinished }) => {
  const { redis, target, fp, clock } = await openStage(onTestFinished);
  const calls = openTargetCalls(redis, limiterKeys(fp), () => String(clock.now));
  const types = async () => (await readEvents(redis, fp, 0, 10)).map(({ event }) => event.type);
  const liveASecond = async (wish: Partial<TargetCall> = {}) => {
    clock.now += 1_000;
    const epoch = (await redis.hget(keys.limiter(fp), 'epoch')) ?? '0';
    const { turn, learned, seen } = await calls.call(quietCall({ epoch, ...wish }));
    const before = learned === '' ? null : (JSON.parse(learned) as TargetControl);
    await calls.store(turn, before, control(before, JSON.parse(seen) as Sums));
    await publishOutages(redis, target);
  };
  await liveASecond();
  await liveASecond({ alarm: { why: 'connection refused', kind: 'unreachable' } });
  expect(await types()).toEqual(['target.outage']);
  await redis.set(keys.stop(fp), storedStop({ by: 'operator', who: 'ana', reason: 'a test', at: 1 }));
  for (let n = 0; n < 3; n++) await liveASecond();
  await redis.del(keys.stop(fp));
  await liveASecond();
  expect(await types()).toEqual(['target.outage']);
});
