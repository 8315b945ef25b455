import type { Job } from 'bullmq';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { type ChunkHandler, type ConsumerOptions, maxJobs, openConsumer } from '../../../src/queue/consumer.ts';
import type { ChunkJob } from '../../../src/queue/queue.ts';
import type { QueueConnection } from '../../../src/redis/connect.ts';
import { fakeSleep } from '../../support/fake-sleep.ts';

type Ended = Awaited<ReturnType<ChunkHandler>>;
type Odd = Partial<ConsumerOptions> & {
  /** What asking the queue for a job does, if not to give the next one. */
  ask?: () => Promise<Job<ChunkJob> | undefined>;
  extendLock?: () => Promise<number>;
  moveToCompleted?: () => Promise<unknown>;
};

/** A consumer of a queue in memory, in a time that only the test moves. `events` has what happened, in order. */
function openTestConsumer(jobs: number, odd: Odd = {}) {
  vi.useFakeTimers({ now: 0 });
  onTestFinished(() => void vi.useRealTimers());
  const events: string[] = [];
  const asked: number[] = [];
  const stops = new Map<number, AbortSignal>();
  const endings = new Map<number, (end: Ended) => void>();
  const tokens: { taken: string; used: string }[] = [];
  let taken = 0;
  const take = async (token: string) => {
    asked.push(Date.now());
    if (odd.ask) return odd.ask();
    if (taken === jobs) {
      await fakeSleep(2_000); // BullMQ waits for a job
      return undefined;
    }
    const chunk = taken++;
    return {
      data: { run: 'r', chunk },
      extendLock: async (used: string) => {
        events.push(`renew ${chunk}`);
        tokens.push({ taken: token, used });
        return odd.extendLock ? odd.extendLock() : 1;
      },
      moveToCompleted: async (_: unknown, used: string) => {
        events.push(`put away ${chunk}`);
        tokens.push({ taken: token, used });
        return odd.moveToCompleted?.();
      },
    } as unknown as Job<ChunkJob>;
  };
  const handle: ChunkHandler = ({ chunk }, stop) => {
    stops.set(chunk, stop);
    events.push(`handle ${chunk}`);
    return new Promise((resolve) => endings.set(chunk, resolve));
  };
  const consumer = openConsumer(
    {
      address: { fp: 'f', name: 'chunks', connection: {} as QueueConnection },
      canTakeMore: () => true,
      handle,
      log: { debug() {}, info() {}, warn() {}, error() {} },
      onDue: (run) => void events.push(`due ${run}`),
      requeue: ({ chunk }) => void events.push(`put back ${chunk}`),
      ...odd,
    },
    {
      connect: () => ({
        getNextJob: take as never,
        waitUntilReady: async () => {},
        closing: undefined,
        waitMs: () => {},
        checkStalled: async () => void events.push('check for stalled jobs'),
        close: async (force) => void events.push(`close${force ? ' by force' : ''}`),
      }),
      sleep: fakeSleep,
    },
  );
  const elapse = (ms: number) => vi.advanceTimersByTimeAsync(ms);
  const end = async (chunk: number, how: Ended) => {
    endings.get(chunk)!(how);
    await elapse(0);
  };
  return { consumer, events, asked, stops, tokens, end, elapse };
}

const handled = (events: string[]) => events.filter((event) => event.startsWith('handle')).length;

describe('the consumer', () => {
  test('connects when it starts, looks for jobs of the dead, and drains without ever having connected', async () => {
    const { consumer, events, elapse } = openTestConsumer(0);
    await consumer.drain();
    expect(events).toEqual([]);
    const other = openTestConsumer(0);
    other.consumer.start();
    await elapse(0);
    expect(other.events).toEqual(['check for stalled jobs']);
    await other.consumer.drain();
  });

  test('takes a job, has its chunk worked on, and puts it away with the token it was taken with', async () => {
    const { consumer, events, tokens, end, elapse } = openTestConsumer(1);
    consumer.start();
    await elapse(0);
    await end(0, 'done');
    expect(events).toEqual(['check for stalled jobs', 'handle 0', 'put away 0']);
    expect(tokens).toHaveLength(1);
    expect(tokens[0]!.used).toBe(tokens[0]!.taken);
    await consumer.drain();
  });

  test('takes each job with a token of its own', async () => {
    const { consumer, tokens, end, elapse } = openTestConsumer(2);
    consumer.start();
    await elapse(10);
    await end(0, 'done');
    await end(1, 'done');
    expect(new Set(tokens.map(({ taken }) => taken)).size).toBe(2);
    await consumer.drain();
  });

  test('asks for none while no more are wanted, and looks every 5 ms whether they are', async () => {
    let canTakeMore = false;
    const { consumer, events, asked, elapse } = openTestConsumer(1, { canTakeMore: () => canTakeMore });
    consumer.start();
    await elapse(1_000);
    expect(asked).toEqual([]);
    canTakeMore = true;
    await elapse(5);
    expect(handled(events)).toBe(1);
    canTakeMore = false;
    await elapse(0);
  });

  test('has 16 jobs in hand at most', async () => {
    const { consumer, events, end, elapse } = openTestConsumer(40);
    consumer.start();
    await elapse(100);
    expect(maxJobs).toBe(16);
    expect(handled(events)).toBe(16);
    await end(3, 'done');
    await elapse(5);
    expect(handled(events)).toBe(17);
  });

  test('rests for half a second when the queue cannot be asked', async () => {
    const ask = () => Promise.reject(new Error('Redis is away'));
    const { consumer, asked, elapse } = openTestConsumer(0, { ask });
    consumer.start();
    await elapse(1_499);
    expect(asked).toEqual([0, 500, 1_000]);
    await consumer.drain();
  });
});

describe('a job', () => {
  test('whose chunk is due again is put away first, and enqueued when the time has come', async () => {
    const { consumer, events, end, elapse } = openTestConsumer(1);
    consumer.start();
    await elapse(0);
    await end(0, { dueInMs: 300 });
    await elapse(299);
    expect(events.slice(2)).toEqual(['put away 0']);
    await elapse(1);
    expect(events.slice(2)).toEqual(['put away 0', 'due r']);
    await consumer.drain();
  });

  test('that was left to others is put back after it was put away', async () => {
    const { consumer, events, end, elapse } = openTestConsumer(1);
    consumer.start();
    await elapse(0);
    await end(0, 'requeue');
    expect(events.slice(2)).toEqual(['put away 0', 'put back 0']);
    await consumer.drain();
  });

  test('keeps its lock for as long as it takes', async () => {
    const { consumer, events, stops, elapse } = openTestConsumer(1);
    consumer.start();
    await elapse(15_000);
    expect(events.slice(2)).toEqual(['renew 0', 'renew 0', 'renew 0']);
    expect(stops.get(0)!.aborted).toBe(false);
  });

  test('stops when its lock is lost: somebody else will take the chunk', async () => {
    const { consumer, stops, elapse } = openTestConsumer(1, { extendLock: async () => 0 });
    consumer.start();
    await elapse(4_999);
    expect(stops.get(0)!.aborted).toBe(false);
    await elapse(1);
    expect(stops.get(0)!.aborted).toBe(true);
  });

  test('goes on while Redis is away: nobody else can take it either', async () => {
    const { consumer, stops, elapse } = openTestConsumer(1, { extendLock: () => Promise.reject(new Error('away')) });
    consumer.start();
    await elapse(60_000);
    expect(stops.get(0)!.aborted).toBe(false);
  });

  test('is no longer renewed once it has ended', async () => {
    const { consumer, events, end, elapse } = openTestConsumer(1);
    consumer.start();
    await elapse(0);
    await end(0, 'done');
    await elapse(60_000);
    expect(events.slice(2)).toEqual(['put away 0']);
    await consumer.drain();
  });

  test('that cannot be put away is over after half a second', async () => {
    const { consumer, events, end, elapse } = openTestConsumer(1, { moveToCompleted: () => new Promise(() => {}) });
    consumer.start();
    await elapse(0);
    await end(0, 'requeue');
    await elapse(499);
    expect(events.slice(2)).toEqual(['put away 0']);
    await elapse(1);
    expect(events.slice(2)).toEqual(['put away 0', 'put back 0']);
    await consumer.drain();
  });

  test('whose handling fails is left in the queue, where its lock runs out, and the next one is taken', async () => {
    const told: object[] = [];
    const log = { debug: (facts: object) => void told.push(facts), info() {}, warn() {}, error() {} };
    const handle = () => Promise.reject(new Error('no such chunk'));
    const { consumer, events, elapse, asked } = openTestConsumer(2, { handle, log });
    consumer.start();
    await elapse(10);
    expect(events).toEqual(['check for stalled jobs']);
    expect(asked).toHaveLength(3);
    expect(told).toEqual([{ reason: 'no such chunk' }, { reason: 'no such chunk' }]);
    await consumer.drain();
  });
});

describe('draining', () => {
  test('takes no more jobs, stops those in hand, and closes the queue when they have ended', async () => {
    const { consumer, events, stops, end, elapse } = openTestConsumer(1);
    consumer.start();
    await elapse(0);
    const drained = consumer.drain();
    expect(stops.get(0)!.aborted).toBe(true);
    await elapse(1_000);
    expect(events).toEqual(['check for stalled jobs', 'handle 0']);
    await end(0, 'done');
    await drained;
    expect(events.slice(2)).toEqual(['put away 0', 'close by force']);
  });

  test('enqueues nothing any more', async () => {
    const { consumer, events, end, elapse } = openTestConsumer(1);
    consumer.start();
    await elapse(0);
    await end(0, { dueInMs: 300 });
    await consumer.drain();
    await elapse(1_000);
    expect(events).not.toContain('due r');
  });

  test('ends its loop', async () => {
    const { consumer, asked, elapse } = openTestConsumer(0);
    consumer.start();
    await elapse(10);
    await consumer.drain();
    await elapse(10_000);
    expect(asked).toEqual([0]);
  });
});
