import { describe, expect, test } from 'vitest';
import type { ConnectionPool, QueuedRequest } from '../../../src/delete/connection-pool.ts';
import { RunRequestQueue } from '../../../src/delete/run-request-queue.ts';
import { bearerForm } from '../../../src/model/resource.ts';

test('a run whose permits went unused does not wait for its quota: it may get them again', () => {
  let now = 0;
  const queue = new RunRequestQueue(() => now);
  const reply = { state: 'running', now: 0, first: 0, gap: 10, window: '', quotaUntil: 0 };
  queue.receive({ ...reply, rate: '100/1000,10/86400000', count: 10, nextAt: 100 }, 0);
  expect(queue.waitMs).toBe(0);
  queue.receive({ ...reply, rate: '100/1000,10/86400000', count: 0, nextAt: 1_000_000 }, 0);
  now = 500; // all are too late
  expect(queue.waitMs).toBe(0);
  expect(queue.takeUnused().unused).toBe(10);
  expect(queue.waitMs).toBe(0);
  queue.receive({ ...reply, rate: '100/1000,10/86400000', count: 0, nextAt: 1_000_000 }, 0);
  expect(queue.waitMs).toBe(999_500);
});

type Asked = {
  queue: { length: number };
  pool: ConnectionPool;
  calls: unknown[];
  requests: QueuedRequest[];
};

/** Connections that note what a queue asks of them. */
function openPool(): Asked {
  const asked = { calls: [], requests: [] } as unknown as Asked;
  const note = (name: string) => (queue?: Asked['queue'], n?: number) => {
    asked.queue = queue ?? asked.queue;
    asked.calls.push(n === undefined ? name : `${name} ${n}`);
    return n ?? 0;
  };
  asked.pool = {
    room: note('room'),
    reserve: note('reserve'),
    pump: note('pump'),
    revalidate: note('revalidate'),
    submit: (queue: { add(request: QueuedRequest): void }, request: QueuedRequest) => {
      asked.requests.push(request);
      queue.add(request);
    },
  } as unknown as ConnectionPool;
  return asked;
}

const given = {
  state: 'running',
  now: 0,
  first: 0,
  gap: 10,
  count: 0,
  window: '',
  quotaUntil: 0,
  nextAt: 0,
};
const request = (leave: () => string | null, answers: unknown[] = []): QueuedRequest => ({
  path: '/a',
  form: bearerForm,
  waitStatuses: new Set<number>(),
  hasFailed: false,
  authorization: '',
  authorize: leave,
  maySend: () => true,
  noteBody: () => {},
  answered: (answer, ms) => void answers.push([answer, ms]),
});

describe('room in the queue of a run', () => {
  test('is none as long as nobody knows whether the run has a rate, and all there is where it has none', () => {
    const { pool, calls } = openPool();
    const queue = new RunRequestQueue(() => 0);
    const way = queue.handleFor(pool);
    expect([way.room(5), calls.length, queue.perSecond]).toEqual([0, 0, null]);
    queue.receive({ ...given, rate: '' }, 0);
    expect([way.room(5), calls, queue.perSecond]).toEqual([5, ['pump', 'room 5'], null]);
  });

  test('is what the permits of its rate leave beside those that wait and those that are being marked', () => {
    const asked = openPool();
    const queue = new RunRequestQueue(() => 0);
    const way = queue.handleFor(asked.pool);
    queue.receive({ ...given, rate: '100/1000', count: 5 }, 0);
    expect([way.room(99), queue.perSecond]).toEqual([5, 100]);
    way.submit(request(() => 'Bearer t'));
    expect(way.room(99)).toBe(4);
    way.reserve(3);
    expect(way.room(99)).toBe(1);
    way.reserve(1);
    asked.calls.length = 0;
    expect([way.room(99), asked.calls]).toEqual([0, []]);
    way.reserve(-4);
    expect([way.room(2), asked.calls]).toEqual([2, ['reserve -4', 'room 2']]);
  });

  test('counts all connections over which the run is sent, each with one queue', () => {
    const [annotations, views] = [openPool(), openPool()];
    const queue = new RunRequestQueue(() => 0);
    const ways = [queue.handleFor(annotations.pool), queue.handleFor(views.pool), queue.handleFor(views.pool)];
    queue.receive({ ...given, rate: '100/1000', count: 5 }, 0);
    for (const way of ways) way.submit(request(() => 'Bearer t'));
    expect(ways[0]!.room(99)).toBe(2);
    expect(views.requests).toHaveLength(2);
    ways[1]!.room(1);
    expect(views.queue.length).toBe(2);
    ways[0]!.revalidate();
    expect(annotations.calls.at(-1)).toBe('revalidate');
  });
});

test('times of Redis become times of this process, and permits of another rate are dropped', () => {
  let now = 1_000;
  const queue = new RunRequestQueue(() => now);
  queue.receive({ ...given, rate: '100/1000', first: 100, count: 3, nextAt: 130 }, 900);
  expect(queue.permits.nextMs(now)).toBe(1_000);
  queue.receive({ ...given, rate: '100/1000', nextAt: 130 }, 900);
  expect(queue.permits.inHand(now)).toBe(3);
  queue.receive({ ...given, rate: '50/1000', nextAt: 130 }, 900);
  expect([queue.permits.inHand(now), queue.perSecond]).toEqual([0, 50]);
  expect(queue.takeUnused().unused).toBe(3);
  queue.receive({ ...given, rate: '50/1000', nextAt: 130 }, 900);
  expect(queue.waitMs).toBe(30);
  expect(queue.takeUnused().unused).toBe(0);
  expect(queue.waitMs).toBe(30);
  expect(queue.handleFor(openPool().pool).waitMs).toBe(30);
  now = 2_000;
  expect(queue.waitMs).toBe(0);
});

test('as many requests of a run leave as still want to', () => {
  const asked = openPool();
  const queue = new RunRequestQueue(() => 0);
  const way = queue.handleFor(asked.pool);
  queue.receive({ ...given, rate: '' }, 0);
  way.room(1);
  const answers: unknown[] = [];
  way.submit(request(() => 'Bearer t', answers));
  way.submit(request(() => null, answers));
  queue.close();
  expect(answers).toEqual([[null, 0]]);
  expect(asked.requests.map(({ authorization }) => authorization)).toEqual(['Bearer t', '']);
  expect(asked.queue.length).toBe(1);
});

describe('a run with a window', () => {
  const opens = Date.parse('2026-11-30T22:00Z');
  const closes = Date.parse('2026-12-01T06:00Z');
  const open = (redisNow: number, window = 'Mon 22:00-06:00') => {
    const clock = { now: 5_000 }; // monotonic: that of Redis is elsewhere
    const queue = new RunRequestQueue(() => clock.now);
    queue.receive({ ...given, rate: '', window }, clock.now - redisNow);
    return { queue, clock };
  };

  test('has no room outside of it, and waits until it opens by the clock of Redis', () => {
    const { queue, clock } = open(opens - 60_000);
    const { pool } = openPool();
    const way = queue.handleFor(pool);
    expect([way.room(5), way.waitMs, queue.closed]).toEqual([0, 60_000, { window: 'Mon 22:00-06:00', until: opens }]);
    clock.now += 59_999;
    expect([way.room(5), queue.isOpen, way.waitMs]).toEqual([0, false, 1]);
    clock.now += 1;
    expect([way.room(5), queue.isOpen, way.waitMs, queue.closed.until]).toEqual([5, true, 0, 0]);
  });

  test('is closed to the millisecond, whatever Redis has not said since', () => {
    const { queue, clock } = open(closes - 1);
    expect(queue.isOpen).toBe(true);
    clock.now += 1;
    expect([queue.isOpen, queue.closed.until]).toEqual([false, Date.parse('2026-12-07T22:00Z')]);
  });

  test('gives up the permits it holds, and takes another window at once', () => {
    const { queue } = open(closes);
    queue.receive({ ...given, rate: '100/1000', count: 3, window: 'Mon 22:00-06:00' }, 5_000 - closes);
    expect(queue.takeUnused().unused).toBe(3);
    queue.receive({ ...given, rate: '', window: '05:00-07:00' }, 5_000 - closes);
    expect(queue.isOpen).toBe(true);
    queue.receive({ ...given, rate: '', window: 'of another version' }, 5_000 - closes);
    expect(queue.isOpen).toBe(false);
    queue.receive({ ...given, rate: '', window: '' }, 5_000 - closes);
    expect(queue.isOpen).toBe(true);
  });

  // From noon to noon, in UTC: 22:00 to 06:00 is seven hours long in spring and nine in autumn.
  const nights = [
    ['22:00-06:00 Europe/Berlin', '2027-03-27T12:00Z', 7 * 60],
    ['22:00-06:00 Europe/Berlin', '2027-10-30T12:00Z', 9 * 60],
    ['02:15-02:45 Europe/Berlin', '2027-03-27T12:00Z', 0],
    ['02:15-02:45 Europe/Berlin', '2027-10-30T12:00Z', 2 * 30],
    ['22:00-02:30 Europe/Berlin', '2027-10-30T12:00Z', 5 * 60 + 30 - 30],
    ['01:45-02:15 Australia/Lord_Howe', '2027-04-03T00:00Z', 2 * 15 + 15],
  ] as const;

  test.each(nights)('%s from %s on: four workers send in %i minutes, by the clocks of the zone', (text, from, open) => {
    const [, opens, closes, zone] = /^(.*)-(.*) (.*)$/.exec(text)!;
    const clockOf = new Intl.DateTimeFormat('en-GB', { timeZone: zone, hour: '2-digit', minute: '2-digit' });
    let at = Date.parse(from);
    const begin = at;
    const workers = [0, 86_400_000, -7_777_777, 1_234].map((ahead) => {
      const queue = new RunRequestQueue(() => at - begin + ahead); // monotonic, each from another time on
      queue.receive({ ...given, rate: '', window: text }, ahead - begin);
      return queue.handleFor(openPool().pool);
    });
    const minutes = new Set<number>();
    for (; at < begin + 86_400_000; at += 15_000) {
      const rooms = workers.map((worker) => worker.room(1));
      expect(new Set(rooms).size).toBe(1);
      if (rooms[0] === 0) continue;
      minutes.add(Math.floor(at / 60_000));
      const shown = clockOf.format(at);
      expect(opens! < closes! ? shown >= opens! && shown < closes! : shown >= opens! || shown < closes!).toBe(true);
    }
    expect(minutes.size).toBe(open);
  });
});
