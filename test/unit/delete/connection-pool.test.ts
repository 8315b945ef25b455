import { describe, expect, it, onTestFinished, test, vi } from 'vitest';
import {
  ConnectionPool,
  FairShares,
  type QueuedRequest,
  type SentRequest,
} from '../../../src/delete/connection-pool.ts';
import type { TargetRequest } from '../../../src/delete/send-delete.ts';
import { type Answer, noContent } from '../../../src/delete/verdict.ts';
import { RunQueue } from '../../../src/limiter/fair-scheduler.ts';
import { Permits } from '../../../src/limiter/permits.ts';
import { bearerForm } from '../../../src/model/resource.ts';
import { near } from '../../../src/redis/distance.ts';
import { status } from './tries.ts';

type Odd = { size?: number; permits?: number; inFlightShare?: number };

/** Connections that answer when the test says so, in a time that only the test moves. */
function openPool({ size = 2, permits: count = 1_000, inFlightShare = 1_000 }: Odd = {}) {
  vi.useFakeTimers({ now: 0 });
  const permits = new Permits();
  permits.add({ firstMs: 0, gapMs: 0, count, leasedAt: 0 }, 0, Number.POSITIVE_INFINITY);
  const limits = {
    permits,
    distance: near,
    inFlightShare,
    isBlocked: false,
    told: [] as unknown[],
    recordSent: (nowMs: number) => nowMs + 1_000,
    recordAnswer: ({ epoch: tag }: { epoch: number }, answer: Answer, ms: number, { waitStatuses }: SentRequest) => {
      limits.told.push({ tag, status: answer.kind === 'status' && answer.status, ms, waits: [...waitStatuses] });
    },
  };
  const onWire: { path: string; authorization: string; connection: number; done: (answer: Answer | null) => void }[] =
    [];
  const closed: number[] = [];
  let opened = 0;
  const open = () => {
    const connection = opened++;
    return {
      send: ({ path, authorization }: TargetRequest, done: (answer: Answer | null) => void) =>
        void onWire.push({ path, authorization, connection, done }),
      close: () => void closed.push(connection),
    };
  };
  const pool = new ConnectionPool(size, open, limits, () => Date.now());
  onTestFinished(() => {
    pool.close();
    vi.useRealTimers();
  });
  const answer = (answer: Answer | null = noContent) => onWire.shift()!.done(answer);
  return { pool, limits, permits, onWire, closed, answer };
}

/** A queue of a run, with permits of its own if they are given, and what became of its requests. */
function openQueue(permits: Permits | null = null) {
  const answers: string[] = [];
  let leaves = true;
  const queue = new RunQueue<QueuedRequest>({
    permits: () => permits,
    stillWants: (request) => {
      if (leaves) request.authorization = `Bearer ${request.path}`;
      else request.answered(null, 0);
      return leaves;
    },
  });
  const request = (path: string): QueuedRequest => ({
    path,
    form: bearerForm,
    waitStatuses: new Set([429]),
    hasFailed: false,
    authorization: '',
    authorize: () => 'Bearer t',
    maySend: () => true,
    noteBody: () => {},
    answered: (answer, ms) => {
      const what = answer === null ? 'stayed' : answer.kind === 'status' ? answer.status : answer.kind;
      answers.push(`${path} ${what} ${ms}`);
    },
  });
  const shut = () => {
    leaves = false;
  };
  return { queue, request, answers, shut };
}

const paths = (onWire: { path: string }[]) => onWire.map(({ path }) => path);

describe('the connections of a process', () => {
  test('carry one request each; the next leaves when one is answered', () => {
    const { pool, onWire, answer } = openPool();
    const { queue, request, answers } = openQueue();
    for (const path of ['a', 'b', 'c']) pool.submit(queue, request(path));
    expect(paths(onWire)).toEqual(['a', 'b']);
    expect(new Set(onWire.map(({ connection }) => connection)).size).toBe(2);
    expect(pool.inFlight).toBe(2);
    answer();
    expect(paths(onWire)).toEqual(['b', 'c']);
    answer();
    answer();
    expect(pool.inFlight).toBe(0);
    expect(answers).toEqual(['a 204 0', 'b 204 0', 'c 204 0']);
  });

  test('send the header that was given when the request left', () => {
    const { pool, onWire } = openPool();
    const { queue, request } = openQueue();
    pool.submit(queue, request('a'));
    expect(onWire[0]).toMatchObject({ path: 'a', authorization: 'Bearer a' });
  });

  test('let the runs take turns', () => {
    const { pool, onWire, answer } = openPool({ size: 1 });
    const [one, other] = [openQueue(), openQueue()];
    for (const path of ['a1', 'a2', 'a3']) pool.submit(one.queue, one.request(path));
    for (const path of ['b1', 'b2']) pool.submit(other.queue, other.request(path));
    const order = [onWire[0]!.path];
    for (let n = 0; n < 4; n++) {
      answer();
      order.push(onWire[0]!.path);
    }
    expect(order).toEqual(['a1', 'a2', 'b1', 'a3', 'b2']);
  });

  test('tell the limiter what each answer was, how long it took and with which permits it was sent', () => {
    const { pool, limits, answer } = openPool();
    const { queue, request, answers } = openQueue();
    vi.setSystemTime(20);
    pool.submit(queue, request('a'));
    vi.setSystemTime(55);
    answer(status(503));
    expect(limits.told).toEqual([{ tag: 1_020, status: 503, ms: 35, waits: [429] }]);
    expect(answers).toEqual(['a 503 35']);
  });

  test('tell the limiter nothing of a request that was not written after all, give its permits back, and are free again', () => {
    const { pool, limits, permits, answer } = openPool({ size: 1 });
    const own = new Permits();
    own.add({ firstMs: 0, gapMs: 0, count: 10, leasedAt: 7 }, 0, Number.POSITIVE_INFINITY);
    const { queue, request, answers } = openQueue(own);
    pool.submit(queue, request('a'));
    pool.submit(queue, request('b'));
    answer(null);
    expect(answers).toEqual(['a stayed 0']);
    expect(limits.told).toEqual([]);
    expect([permits.takeUnused(), own.takeUnused()]).toEqual([
      { unused: 1, unusedSince: 0 },
      { unused: 1, unusedSince: 7 },
    ]);
    answer();
    expect(answers.slice(1)).toEqual(['b 204 0']);
    expect([permits.takeUnused().unused, own.takeUnused().unused]).toEqual([0, 0]);
  });

  test('give the one object for a plain success to whoever sent it, also where the answer had something to say', () => {
    const { pool, answer } = openPool();
    const { queue, request } = openQueue();
    const answers: unknown[] = [];
    pool.submit(queue, { ...request('a'), answered: (answer) => void answers.push(answer) });
    pool.submit(queue, { ...request('b'), answered: (answer) => void answers.push(answer) });
    const created = status(200);
    answer(status(204, { 'ratelimit-remaining': '1' }));
    answer(created);
    expect(answers[0]).toBe(noContent);
    expect(answers[1]).toBe(created);
  });

  test('are no more in use than the share of this process in what all may have on the wire', () => {
    const { pool, limits, onWire, answer } = openPool({ size: 4, inFlightShare: 1 });
    const { queue, request } = openQueue();
    for (const path of ['a', 'b', 'c']) pool.submit(queue, request(path));
    expect(paths(onWire)).toEqual(['a']);
    limits.inFlightShare = 2;
    pool.pump();
    expect(paths(onWire)).toEqual(['a', 'b']);
    answer();
    expect(paths(onWire)).toEqual(['b', 'c']);
  });

  test('send nothing without a permit, and go on when there is one', () => {
    const { pool, permits, onWire } = openPool({ permits: 1 });
    const { queue, request } = openQueue();
    for (const path of ['a', 'b']) pool.submit(queue, request(path));
    expect(paths(onWire)).toEqual(['a']);
    permits.add({ firstMs: 0, gapMs: 1, count: 1, leasedAt: 0 }, 0);
    pool.pump();
    expect(paths(onWire)).toEqual(['a', 'b']);
  });

  test('know whether all that wants to send has a rate of its own', () => {
    const { pool } = openPool();
    const paced = new RunQueue<QueuedRequest>({ permits: () => new Permits(), stillWants: () => true });
    const { queue } = openQueue();
    pool.room(paced, 1);
    expect(pool.isPaced).toBe(true);
    pool.room(queue, 1);
    pool.room(paced, 1);
    expect(pool.isPaced).toBe(false);
    vi.advanceTimersByTime(1_001);
    expect(pool.isPaced).toBe(true);
  });

  test('note that permits had to wait for a free one', () => {
    const { pool, answer } = openPool({ size: 1 });
    const { queue, request } = openQueue();
    pool.submit(queue, request('a'));
    expect(pool.takeStarved()).toBe(false);
    pool.submit(queue, request('b'));
    expect(pool.takeStarved()).toBe(true);
    expect(pool.takeStarved()).toBe(false);
    answer();
  });

  test('ask ten times a second whether those in queue still want to leave, and at once when a gate closes', () => {
    const { pool } = openPool({ permits: 0 });
    const { queue, request, answers, shut } = openQueue();
    pool.submit(queue, request('a'));
    shut();
    vi.advanceTimersByTime(99);
    expect(answers).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(answers).toEqual(['a stayed 0']);
    pool.submit(queue, request('b'));
    pool.revalidate();
    expect(answers).toEqual(['a stayed 0', 'b stayed 0']);
  });

  test('are closed together, and nobody is asked any more', () => {
    const { pool, closed } = openPool({ size: 3, permits: 0 });
    const { queue, request, answers, shut } = openQueue();
    pool.submit(queue, request('a'));
    pool.close();
    shut();
    vi.advanceTimersByTime(1_000);
    expect(closed).toEqual([0, 1, 2]);
    expect(answers).toEqual([]);
  });
});

describe('room for requests that are not marked yet', () => {
  test('is as large as the number of free connections while nothing was answered', () => {
    const { pool } = openPool({ size: 8 });
    const { queue, request } = openQueue();
    expect(pool.room(queue, 100)).toBe(8);
    expect(pool.room(queue, 3)).toBe(3);
    pool.submit(queue, request('a'));
    expect(pool.room(queue, 100)).toBe(7);
  });

  test('grows by two and a half times what was answered in a tenth of a second, this one or the last', () => {
    const { pool, answer } = openPool({ size: 8 });
    const { queue, request } = openQueue();
    for (let n = 0; n < 5; n++) {
      pool.submit(queue, request('a'));
      answer();
    }
    expect(pool.room(queue, 100)).toBe(8 + 12);
    vi.advanceTimersByTime(100);
    expect(pool.room(queue, 100)).toBe(8 + 12);
    pool.submit(queue, request('a'));
    answer();
    expect(pool.room(queue, 100)).toBe(8 + 12);
    vi.advanceTimersByTime(100);
    expect(pool.room(queue, 100)).toBe(8 + 2);
    vi.advanceTimersByTime(100);
    expect(pool.room(queue, 100)).toBe(8);
  });

  test('reaches as far as marks take if Redis is far away, and follows what was answered for as long', () => {
    const { pool, limits, answer } = openPool({ size: 8 });
    limits.distance = { ...near, aheadMs: 500 };
    const { queue, request } = openQueue();
    for (let n = 0; n < 5; n++) {
      pool.submit(queue, request('a'));
      answer();
    }
    for (let ticks = 0; ticks <= 6; ticks++) {
      expect(pool.room(queue, 100)).toBe(8 + 37);
      vi.advanceTimersByTime(100);
    }
    expect(pool.room(queue, 100)).toBe(8);
  });

  test('is no larger than the permits in hand', () => {
    const { pool } = openPool({ size: 8, permits: 5 });
    expect(pool.room(openQueue().queue, 100)).toBe(5);
  });

  test('is none while the server wants us to wait', () => {
    const { pool, limits } = openPool();
    limits.isBlocked = true;
    expect(pool.room(openQueue().queue, 100)).toBe(0);
  });

  test('is what those in queue and those that are being marked leave of it', () => {
    const { pool } = openPool({ size: 4, permits: 3 });
    const [one, other] = [openQueue(), openQueue()];
    pool.reserve(one.queue, 2);
    expect(pool.room(other.queue, 100)).toBe(1);
    pool.reserve(one.queue, -2);
    expect(pool.room(one.queue, 100)).toBe(2); // the other one wants some as well
  });

  test('never goes below nothing', () => {
    const { pool, limits } = openPool({ size: 2 });
    const { queue, request } = openQueue();
    for (const path of ['a', 'b', 'c', 'd']) pool.submit(queue, request(path));
    limits.inFlightShare = 0;
    expect(pool.room(queue, 100)).toBe(0);
  });
});

describe('another chunk', () => {
  test('is let in once in 3 ms, and once in 150 ms while none has asked for room or ended', () => {
    const { pool } = openPool();
    const { queue } = openQueue();
    expect(pool.admit(0, false)).toBe(true);
    pool.room(queue, 1);
    expect(pool.admit(1, false)).toBe(false);
    vi.setSystemTime(2);
    expect(pool.admit(1, false)).toBe(false);
    vi.setSystemTime(3);
    expect(pool.admit(1, false)).toBe(true);
    vi.setSystemTime(152);
    expect(pool.admit(1, false)).toBe(false);
    vi.setSystemTime(153);
    expect(pool.admit(1, false)).toBe(true);
    pool.chunkEnded();
    vi.setSystemTime(156);
    expect(pool.admit(1, false)).toBe(true);
  });

  test('is not let in while four requests a connection wait', () => {
    const { pool, limits } = openPool({ size: 2 });
    const { queue, request } = openQueue();
    limits.inFlightShare = 0;
    for (let n = 0; n < 7; n++) pool.submit(queue, request('a'));
    expect(pool.admit(1, false)).toBe(true);
    vi.setSystemTime(200);
    pool.submit(queue, request('a'));
    expect(pool.admit(1, false)).toBe(false);
  });

  test.for([
    [1, 2],
    [16, 2],
    [64, 4],
    [4_096, 4],
  ] as const)(
    'beside %i connections: %i that want more room than there is crowd out any but that of a run that waits, once in 20 ms',
    ([size, enough]) => {
      const { pool } = openPool({ size });
      const { queue } = openQueue();
      pool.room(queue, 5_000);
      expect(pool.isSaturated(enough - 1)).toBe(false);
      expect(pool.isSaturated(enough)).toBe(true);
      expect(pool.admit(enough - 1, false)).toBe(true);
      vi.setSystemTime(10);
      expect(pool.admit(enough, false)).toBe(false);
      vi.setSystemTime(19);
      expect(pool.admit(enough, true)).toBe(false);
      vi.setSystemTime(20);
      expect(pool.admit(enough, true)).toBe(true);
    },
  );

  test('finds them crowded for 150 ms after somebody wanted more than there was', () => {
    const { pool } = openPool({ size: 2 });
    const { queue } = openQueue();
    expect(pool.isSaturated(16)).toBe(false);
    pool.room(queue, 2);
    expect(pool.isSaturated(16)).toBe(false);
    pool.room(queue, 3);
    vi.setSystemTime(149);
    expect(pool.isSaturated(16)).toBe(true);
    vi.setSystemTime(150);
    expect(pool.isSaturated(16)).toBe(false);
  });
});

describe('demand', () => {
  const queue = (length = 0) => ({ length });

  describe('room in the connection pool', () => {
    it('is all for a queue that is alone', () => {
      expect(new FairShares().roomFor(queue(), 100, 0)).toBe(100);
    });

    it('is shared alike among those that want some', () => {
      const demand = new FairShares();
      const [one, other] = [queue(), queue()];
      demand.roomFor(one, 100, 0);
      expect(demand.roomFor(other, 100, 0)).toBe(50);
      expect(demand.roomFor(one, 100, 0)).toBe(50);
      expect(demand.roomFor(queue(), 100, 0)).toBe(34);
    });

    it('counts what a queue holds, and what it has reserved', () => {
      const demand = new FairShares();
      const [one, other] = [queue(10), queue()];
      demand.roomFor(other, 100, 0);
      demand.reserve(one, 15);
      expect(demand.roomFor(one, 100, 0)).toBe(25);
      expect(demand.reserved).toBe(15);
      demand.reserve(one, -15);
      expect(demand.roomFor(one, 100, 0)).toBe(40);
      expect(demand.reserved).toBe(0);
    });

    it('goes to the others once a queue wants none any more', () => {
      const demand = new FairShares();
      const [quiet, busy] = [queue(), queue()];
      demand.roomFor(quiet, 100, 0);
      expect(demand.roomFor(busy, 100, 250)).toBe(50);
      expect(demand.roomFor(busy, 100, 251)).toBe(100);
    });

    it('never leaves a queue without the last place', () => {
      const demand = new FairShares();
      demand.roomFor(queue(), 1, 0);
      expect(demand.roomFor(queue(), 1, 0)).toBe(1);
    });
  });
});
