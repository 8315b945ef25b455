import { describe, expect, test } from 'vitest';
import type { ConnectionPool, QueuedRequest } from '../../../src/delete/connection-pool.ts';
import { RunRequestQueue } from '../../../src/delete/run-request-queue.ts';

test('a run whose permits went unused does not wait for its quota: it may get them again', () => {
  let now = 0;
  const line = new RunRequestQueue(() => now);
  const reply = { state: 'running', now: 0, first: 0, gap: 10, priority: '', quotaUntil: 0 };
  line.receive({ ...reply, rate: '100/1000,10/86400000', count: 10, nextAt: 100 }, 0);
  expect(line.waitMs).toBe(0);
  line.receive({ ...reply, rate: '100/1000,10/86400000', count: 0, nextAt: 1_000_000 }, 0);
  now = 500; // all are too late
  expect(line.waitMs).toBe(0);
  expect(line.takeUnused()).toBe(10);
  expect(line.waitMs).toBe(0);
  line.receive({ ...reply, rate: '100/1000,10/86400000', count: 0, nextAt: 1_000_000 }, 0);
  expect(line.waitMs).toBe(999_500);
});

type Asked = {
  line: { weight: number; length: number };
  lanes: ConnectionPool;
  calls: unknown[];
  requests: QueuedRequest[];
};

/** Connections that note what a line asks of them. */
function noteLanes(): Asked {
  const asked = { calls: [], requests: [] } as unknown as Asked;
  const note = (name: string) => (line?: Asked['line'], n?: number) => {
    asked.line = line ?? asked.line;
    asked.calls.push(n === undefined ? name : `${name} ${n}`);
    return n ?? 0;
  };
  asked.lanes = {
    ...{ room: note('room'), expect: note('expect'), pump: note('pump'), review: note('review') },
    submit: (line: { join(request: QueuedRequest): void }, request: QueuedRequest) => {
      asked.requests.push(request);
      line.join(request);
    },
  } as unknown as ConnectionPool;
  return asked;
}

const given = { state: 'running', now: 0, first: 0, gap: 10, count: 0, priority: '', quotaUntil: 0, nextAt: 0 };
const request = (leave: () => string | null, answers: unknown[] = []): QueuedRequest => ({
  ...{ path: '/a', waitStatuses: new Set<number>(), authorize: leave },
  answered: (answer, ms) => void answers.push([answer, ms]),
});

describe('room in the line of a run', () => {
  test('is none as long as nobody knows whether the run has a rate, and all there is where it has none', () => {
    const { lanes, calls } = noteLanes();
    const line = new RunRequestQueue(() => 0);
    const way = line.handleFor(lanes);
    expect([way.room(5), calls.length, line.perSecond]).toEqual([0, 0, null]);
    line.receive({ ...given, rate: '' }, 0);
    expect([way.room(5), calls, line.perSecond]).toEqual([5, ['pump', 'room 5'], null]);
  });

  test('is what the permits of its rate leave beside those that wait and those that are being marked', () => {
    const asked = noteLanes();
    const line = new RunRequestQueue(() => 0);
    const way = line.handleFor(asked.lanes);
    line.receive({ ...given, rate: '100/1000', count: 5 }, 0);
    expect([way.room(99), line.perSecond]).toEqual([5, 100]);
    way.submit(request(() => 'Bearer t'));
    expect(way.room(99)).toBe(4);
    way.reserve(3);
    expect(way.room(99)).toBe(1);
    way.reserve(1);
    asked.calls.length = 0;
    expect([way.room(99), asked.calls]).toEqual([0, []]);
    way.reserve(-4);
    expect([way.room(2), asked.calls]).toEqual([2, ['expect -4', 'room 2']]);
  });

  test('counts all connections over which the run is sent, each with one line', () => {
    const [annotations, views] = [noteLanes(), noteLanes()];
    const line = new RunRequestQueue(() => 0);
    const ways = [line.handleFor(annotations.lanes), line.handleFor(views.lanes), line.handleFor(views.lanes)];
    line.receive({ ...given, rate: '100/1000', count: 5 }, 0);
    for (const way of ways) way.submit(request(() => 'Bearer t'));
    expect(ways[0]!.room(99)).toBe(2);
    expect(views.requests).toHaveLength(2);
    ways[1]!.room(1);
    expect(views.line.length).toBe(2);
    ways[0]!.revalidate();
    expect(annotations.calls.at(-1)).toBe('review');
  });
});

test('times of Redis become times of this process, and permits of another rate are dropped', () => {
  let now = 1_000;
  const line = new RunRequestQueue(() => now);
  line.receive({ ...given, rate: '100/1000', first: 100, count: 3, nextAt: 130 }, 900);
  expect(line.permits.nextMs(now)).toBe(1_000);
  line.receive({ ...given, rate: '100/1000', nextAt: 130 }, 900);
  expect(line.permits.inHand(now)).toBe(3);
  line.receive({ ...given, rate: '50/1000', nextAt: 130 }, 900);
  expect([line.permits.inHand(now), line.perSecond]).toEqual([0, 50]);
  expect(line.takeUnused()).toBe(3);
  line.receive({ ...given, rate: '50/1000', nextAt: 130 }, 900);
  expect(line.waitMs).toBe(30);
  expect(line.takeUnused()).toBe(0);
  expect(line.waitMs).toBe(30);
  expect(line.handleFor(noteLanes().lanes).waitMs).toBe(30);
  now = 2_000;
  expect(line.waitMs).toBe(0);
});

test('a run goes by its share, and as many of its requests leave as still want to', () => {
  const asked = noteLanes();
  const line = new RunRequestQueue(() => 0);
  const way = line.handleFor(asked.lanes);
  line.receive({ ...given, rate: '', priority: 'high' }, 0);
  way.room(1);
  const high = asked.line.weight;
  line.receive({ ...given, rate: '', priority: '' }, 0);
  expect(high).toBeGreaterThan(asked.line.weight);
  const answers: unknown[] = [];
  way.submit(request(() => 'Bearer t', answers));
  way.submit(request(() => null, answers));
  line.close();
  expect(answers).toEqual([[null, 0]]);
  expect(asked.requests.map(({ authorization }) => authorization)).toEqual(['Bearer t', undefined]);
  expect(asked.line.length).toBe(1);
});
