import { createHmac, randomUUID } from 'node:crypto';
import { describe, expect, test, vi } from 'vitest';
import { markPublished } from '../../../src/ledger/changes.ts';
import { addEvent, type OutboxEvent, readCursor, readEvents } from '../../../src/ledger/outbox.ts';
import { readRun } from '../../../src/ledger/run.ts';
import { control, type TargetControl } from '../../../src/limiter/learning/control.ts';
import type { Sums } from '../../../src/limiter/learning/sums.ts';
import { storedStop } from '../../../src/limiter/stop.ts';
import { limiterKeys, openTargetCalls, type TargetCall } from '../../../src/limiter/target-call.ts';
import type { Log } from '../../../src/logger.ts';
import { targetOf } from '../../../src/model/target.ts';
import { openReceivers } from '../../../src/notify/receivers.ts';
import { receiverKey } from '../../../src/notify/webhook.ts';
import { keys } from '../../../src/redis/keys.ts';
import { publishChanges, publishOutages } from '../../../src/worker/event-sources.ts';
import { Notifier } from '../../../src/worker/notifier.ts';
import { startRun } from '../../support/fleet.ts';
import { type AtEnd, type Harness, openHarness } from '../../support/harness.ts';
import { annotations, makeIds } from '../../support/ids.ts';
import { until } from '../../support/processes.ts';
import { openReceiver, type ReceiverServer } from '../../support/receiver.ts';
import { openTestRedis } from '../../support/redis.ts';
import { forgetKeys } from '../../support/redis-keys.ts';
import { quietCall } from '../../support/target-call.ts';

const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';

type Posted = { id: string; type: string; text: string; data: Record<string, unknown> };

/** What a receiver took, in the order in which it took it. */
function taken({ received }: ReceiverServer): Posted[] {
  const good = received.filter(({ status }) => status === 200);
  return good.map(({ headers, body }) => ({ id: String(headers['webhook-id']), ...JSON.parse(body) }));
}

function typesOf(receiver: ReceiverServer): string[] {
  return taken(receiver).map(({ type }) => type);
}

async function submit(harness: Harness, ids: string[]): Promise<string> {
  await startRun(harness, ids, ['--detach']);
  return (await harness.runs())[0]!.id;
}

/** A target in Redis without processes, and notifiers with a clock that the test sets. */
async function openOutbox(atEnd: AtEnd) {
  const redis = await openTestRedis();
  const target = targetOf('http://127.0.0.1:9', randomUUID());
  const { fp } = target;
  atEnd(async () => {
    await forgetKeys(redis, `*${fp}*`);
    redis.disconnect();
  });
  const clock = { now: Date.now() };
  const told: string[] = [];
  const tell = (facts: object, message: string) => void told.push(`${message} ${JSON.stringify(facts)}`);
  const log: Log = { debug() {}, info: tell, warn: tell, error: tell };
  const notifier = async (url: string) => {
    const [receiver] = openReceivers(
      { notify: [url], notifySecretFile: undefined, proxy: undefined, allowHttp: undefined },
      {},
    );
    const made = new Notifier({ redis, fp, receiver: receiver!, log, now: () => clock.now, random: () => 0 });
    await made.post(); // it begins at the end
    return made;
  };
  let events = 0;
  const add = async (id = `e-${++events}`) => {
    const event: OutboxEvent = { id, type: 'test', timestamp: new Date().toISOString(), data: {}, text: id };
    await addEvent(redis, fp, event);
  };
  return { redis, target, fp, clock, told, notifier, add };
}

describe('a worker with --notify', () => {
  test('posts before the start of a run what it will delete and when, with the command and the link that cancel it', async ({
    onTestFinished,
  }) => {
    const ids = makeIds('n', 6);
    const harness = await openHarness(onTestFinished, { objects: annotations(ids) });
    const receiver = await openReceiver(onTestFinished);
    await harness.worker(['--notify', receiver.url, '--dashboard-url', 'https://ops.example.com']);
    await startRun(harness, ids, ['--detach', '--grace', '2h']);
    await until('all is told', () => typesOf(receiver).length === 2);
    expect(typesOf(receiver)).toEqual(['run.running', 'run.waiting']);
    const { id, startsAt } = await harness.onlyRun();
    const { data, text } = taken(receiver)[1]!;
    expect(data).toMatchObject({
      run: id,
      why: 'grace',
      starts_at: new Date(startsAt).toISOString(),
      pending: 6,
      next: `expunge cancel ${id}`,
      url: `https://ops.example.com/runs/${id}`,
    });
    expect(text).toContain('will delete 6 ids of ');
    await harness.expunge(['cancel', id, '--yes']);
    await until('its end is told', () => typesOf(receiver).at(-1) === 'run.cancelled');
    expect(harness.sandbox.seen).toEqual([]);
  });

  test('posts each change of a run’s state in its order, signed, with a line for people', async ({
    onTestFinished,
  }) => {
    const ids = makeIds('n', 60);
    const harness = await openHarness(onTestFinished, { objects: annotations(ids) });
    const receiver = await openReceiver(onTestFinished);
    const args = ['--rate', '20/s', '--notify', `${receiver.url}/verschwiegen`];
    const worker = await harness.worker(args, { EXPUNGE_NOTIFY_SECRET: secret });
    const run = await submit(harness, ids);
    await harness.expunge(['pause', run, '--reason', 'release']);
    await harness.expunge(['resume', run]);
    const all = ['run.running', 'run.paused', 'run.running', 'run.completed'];
    await until('all is told', () => typesOf(receiver).length === all.length);
    expect(typesOf(receiver)).toEqual(all);
    expect(taken(receiver).map(({ id }) => id)).toEqual([1, 2, 3, 4].map((n) => `run-${run}-${n}`));
    expect(taken(receiver)[1]!.text).toMatch(/ is paused by .*: release$/);
    expect(taken(receiver)[3]).toMatchObject({ data: { run, state: 'completed', rows: 60, deleted: 60, exit: 0 } });
    for (const { headers, body, path, method } of receiver.received) {
      const signed = `${headers['webhook-id']}.${headers['webhook-timestamp']}.${body}`;
      const key = Buffer.from(secret.slice('whsec_'.length), 'base64');
      expect(headers['webhook-signature']).toBe(`v1,${createHmac('sha256', key).update(signed).digest('base64')}`);
      expect([method, path, headers['content-type']]).toEqual(['POST', '/verschwiegen', 'application/json']);
    }
    expect(worker.stderr).not.toMatch(/verschwiegen|whsec_/);
  });

  test('tells of a halt, a refused list and a paused schedule', async ({ onTestFinished }) => {
    const harness = await openHarness(onTestFinished, { objects: [] });
    const receiver = await openReceiver(onTestFinished);
    const config = harness.file('c.json', JSON.stringify({ sources: { none: { command: ['true'] } } }));
    await harness.worker(['--notify', receiver.url], { EXPUNGE_CONFIG: config });
    const run = await submit(harness, makeIds('n', 700));
    const halted = await until('the halt is told', () => taken(receiver).find(({ type }) => type === 'run.halted'));
    expect(halted).toMatchObject({ data: { run, halt: 'all_absent', exit: 4 } });
    const add = ['--cron', '* * * * * *', '--from', 'none', '--resource', 'views', '--max-deletes', '5'];
    await harness.expunge(['schedule', 'add', 'often', ...add]);
    await until('the pause is told', () => typesOf(receiver).includes('schedule.paused'));
    const told = taken(receiver).filter(({ type }) => type !== 'schedule.missed'); // a busy machine comes late to an occurrence
    const [refused, paused] = told.filter(({ type }) => type.startsWith('schedule.'));
    expect(refused).toMatchObject({ type: 'schedule.refused', data: { schedule: 'often', guard: 'empty' } });
    expect(paused).toMatchObject({ type: 'schedule.paused', data: { schedule: 'often', guard: 'empty' } });
  });

  test('tells of an outage, and of its end', async ({ onTestFinished }) => {
    const ids = makeIds('n', 2_000);
    const harness = await openHarness(onTestFinished, { objects: annotations(ids) });
    const receiver = await openReceiver(onTestFinished);
    await harness.worker(['--rate', '200/s', '--notify', receiver.url]);
    await submit(harness, ids);
    await until('something is deleted', () => harness.sandbox.executed.size > 100);
    harness.sandbox.faults = { 'status-503': 1 };
    const outage = await until('it is told', () => taken(receiver).find(({ type }) => type === 'target.outage'));
    expect(outage.text).toMatch(/^Outage: no request to .* succeeds: /);
    harness.sandbox.faults = {};
    const end = await until('its end is told', () => taken(receiver).find(({ type }) => type === 'target.recovered'));
    expect(end.id).toBe(`${outage.id}-over`);
  });

  /** @invariant events-once */
  test('lets a receiver that is away or hangs hold up neither another one nor a run', async ({ onTestFinished }) => {
    const ids = makeIds('n', 20);
    const harness = await openHarness(onTestFinished, { objects: annotations(ids) });
    const [good, slow] = [await openReceiver(onTestFinished), await openReceiver(onTestFinished)];
    slow.answer = () => 'nothing';
    const away = slow.url.replace(/\d+$/, '9');
    await harness.worker(['--notify', away, '--notify', slow.url, '--notify', good.url]);
    const run = await submit(harness, ids);
    await until('the good one is told', () => typesOf(good).length === 2);
    expect((await readRun(harness.redis, run))!.state).toBe('completed');
    expect(typesOf(good)).toEqual(['run.running', 'run.completed']);
  });

  test('calls the heartbeat of a schedule at the end of an occurrence that went well, until it is taken', async ({
    onTestFinished,
  }) => {
    const ids = makeIds('n', 3);
    const harness = await openHarness(onTestFinished, { objects: annotations(ids) });
    const monitor = await openReceiver(onTestFinished);
    monitor.answer = () => (monitor.received.length === 0 ? 500 : 200);
    const sources = { list: { command: ['printf', `${ids.join('\\n')}\\n`] } };
    await harness.worker([], { EXPUNGE_CONFIG: harness.file('c.json', JSON.stringify({ sources })) });
    const add = ['--cron', '* * * * * *', '--from', 'list', '--resource', 'annotations', '--max-deletes', '5'];
    await harness.expunge(['schedule', 'add', 'often', ...add, '--heartbeat', `${monitor.url}/ping/verschwiegen`]);
    await until('the heartbeat is taken', () => monitor.received.some(({ status }) => status === 200));
    expect(monitor.received.map(({ method, path }) => `${method} ${path}`).slice(0, 2)).toEqual([
      'GET /ping/verschwiegen',
      'GET /ping/verschwiegen',
    ]);
    const listed = await harness.expunge(['schedule', 'list', '--json']);
    expect(JSON.parse(listed.stdout)).toMatchObject({ heartbeat: `${monitor.url}/***` });
    // The next list is the same: a guard refuses it, which is no good end.
    await until('the next occurrence is refused', async () =>
      (await harness.expunge(['schedule', 'list'])).stdout.includes('refused'),
    );
    const [schedule] = await harness.redis.hmget(keys.schedule(harness.target.fp, 'often'), 'heartbeatDue');
    expect([schedule, monitor.received.length]).toEqual([null, 2]);
  });
});

describe('an event', () => {
  /** @invariant events-once */
  test('is posted once, though several workers post to the same receiver', async ({ onTestFinished }) => {
    const { notifier, add } = await openOutbox(onTestFinished);
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
    const { redis, fp, notifier, add } = await openOutbox(onTestFinished);
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
    const { notifier, add, clock, told } = await openOutbox(onTestFinished);
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
    const { notifier, add, clock, told } = await openOutbox(onTestFinished);
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
    const { notifier, add, clock, told } = await openOutbox(onTestFinished);
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
    const { redis, fp, notifier, add } = await openOutbox(onTestFinished);
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

  test('is kept in the outbox for a day, among the last thousand', async ({ onTestFinished }) => {
    const { redis, fp, add } = await openOutbox(onTestFinished);
    for (let n = 0; n < 1_020; n++) await add();
    expect(await Promise.all([redis.zcard(keys.outbox(fp)), redis.hlen(keys.outboxEvents(fp))])).toEqual([
      1_000, 1_000,
    ]);
    const [first] = await readEvents(redis, fp, 0, 1);
    expect(first!.event.id).toBe('e-21');
    for (const key of [keys.outbox(fp), keys.outboxEvents(fp)])
      expect(await redis.pttl(key)).toBeGreaterThan(86_000_000);
    await redis.zadd(keys.outbox(fp), (Date.now() - 86_500_000) * 1_000, 'e-500');
    await add();
    expect(await redis.hexists(keys.outboxEvents(fp), 'e-500')).toBe(0);
  });

  test('gets a higher number than all before, also after the outbox was empty', async ({ onTestFinished }) => {
    const { redis, fp, add } = await openOutbox(onTestFinished);
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
  const harness = await openHarness(onTestFinished);
  const { redis, target } = harness;
  const run = await submit(harness, makeIds('n', 3));
  await harness.expunge(['pause', run]);
  await harness.expunge(['resume', run]);
  const changes = Number(await redis.hget(keys.run(run), 'changes'));
  expect(changes).toBe(3);
  const pass = async (published: number) => publishChanges(redis, (await readRun(redis, run))!, { changes, published });
  await pass(0);
  await markPublished(redis, run, 1); // as if it had died before it noted the others
  await pass(1);
  const ids = (await readEvents(redis, target.fp, 0, 10)).map(({ event }) => event.id);
  expect(ids).toEqual([1, 2, 3].map((n) => `run-${run}-${n}`));
  expect(await redis.hget(keys.run(run), 'published')).toBe('3');
});

test('an outage is told once by several workers, and so is its end', async ({ onTestFinished }) => {
  const { redis, target, fp } = await openOutbox(onTestFinished);
  const limiter = keys.limiter(fp, 'all');
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
  const { redis, target, fp } = await openOutbox(onTestFinished);
  const limiter = keys.limiter(fp, 'all');
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
  const { redis, target, fp, clock } = await openOutbox(onTestFinished);
  const calls = openTargetCalls(redis, limiterKeys(fp, 'all'), () => String(clock.now));
  const types = async () => (await readEvents(redis, fp, 0, 10)).map(({ event }) => event.type);
  const liveASecond = async (wish: Partial<TargetCall> = {}) => {
    clock.now += 1_000;
    const epoch = (await redis.hget(keys.limiter(fp, 'all'), 'epoch')) ?? '0';
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
