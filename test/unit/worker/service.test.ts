import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { ConnectionPool } from '../../../src/delete/connection-pool.ts';
import type { TargetRequest } from '../../../src/delete/send-delete.ts';
import { type Answer, noContent } from '../../../src/delete/verdict.ts';
import { untouched } from '../../../src/ledger/cell.ts';
import { targetOf } from '../../../src/model/target.ts';
import type { Consumer, ConsumerOptions } from '../../../src/queue/consumer.ts';
import type { ChunkQueue } from '../../../src/queue/queue.ts';
import { ownQueueName, sharedQueueName } from '../../../src/queue/queues.ts';
import type { QueueConnection } from '../../../src/redis/connect.ts';
import { fixedToken } from '../../../src/token/fixed-token.ts';
import type { KnownActions } from '../../../src/worker/known-actions.ts';
import { Parts } from '../../../src/worker/parts.ts';
import { openService, type ServiceOptions } from '../../../src/worker/service.ts';
import type { OpenTargetSender } from '../../../src/worker/target-sender.ts';
import { openMemoryLedger } from '../../support/memory-ledger.ts';
import { openLimits } from '../delete/tries.ts';

const log = { debug() {}, info() {}, warn() {}, error() {} };

type Odd = {
  options?: Partial<ServiceOptions>;
  ledger?: Parameters<typeof openMemoryLedger>[1];
  queue?: Partial<ChunkQueue>;
  /** What drains the consumer, beside telling of it. */
  drainConsumer?: () => Promise<void>;
  throttledMs?: number;
  stop?: OpenTargetSender['stop'];
};

/**
 * A service whose queue, requests and ledger are in memory, in a time that only the test moves. `events` tells which of them was started and
 * drained; requests are answered when the test says so.
 */
function openTestService(odd: Odd = {}) {
  vi.useFakeTimers({ now: 0 });
  const events: string[] = [];
  const note = (event: string) => void events.push(event);
  const { ledger, model } = openMemoryLedger([[untouched, untouched]], odd.ledger);
  const pace = async () => ['running', '', Date.now(), 0, 0, 0, 0, 0, '', '', '', '0'];
  const asked = { expungeRunPace: pace, hincrby: async () => 0, zrange: async () => [], client: async () => '' };
  Object.assign(ledger.redis, asked);
  const onWire: ((answer: Answer) => void)[] = [];
  const limits = openLimits({ throttledMs: odd.throttledMs ?? 0 });
  const lane = { send: (_: TargetRequest, done: (answer: Answer) => void) => void onWire.push(done) };
  const connections = new ConnectionPool(
    4,
    () => ({ ...lane, close: () => {} }),
    limits,
    () => performance.now(),
  );
  let consumerOptions: ConsumerOptions | null = null;
  const sender = {
    connections,
    limits,
    start: () => note('start sender'),
    pump: () => connections.pump(),
    close: async () => note('drain sender'),
    inFlight: 0,
    hold: null,
    stop: odd.stop ?? null,
    limit: null,
  } as unknown as OpenTargetSender;
  const queue = {
    open: () => note('open queue'),
    add: async (jobs: unknown[]) => note(`add ${jobs.length}`),
    remove: async () => note('remove queue'),
    close: async () => note('close queue'),
    ...odd.queue,
  } as ChunkQueue;
  const options: ServiceOptions = {
    ledger,
    log,
    queueName: sharedQueueName,
    queueConnection: {} as QueueConnection,
    target: targetOf('http://localhost:1/base/', 'a'),
    token: fixedToken('t', 'test'),
    connection: { requestTimeoutMs: 3_000, ca: null, proxy: null },
    maxConcurrency: 4,
    retryDelaysMs: [],
    unreachableTimeoutMs: 60_000,
    stopFile: null,
    ...odd.options,
  };
  const service = openService(options, {
    openTargetSender: () => sender,
    openQueue: () => queue,
    openKnownActions: () => {
      const known = { isSure: true, stop: null, losses: [], sawStop: () => {}, sawRun: () => {} };
      return { ...known, part: { name: 'actions' }, confirm: async () => {} } as unknown as KnownActions;
    },
    openConsumer: (given): Consumer => {
      consumerOptions = given;
      return {
        start: () => note('start consumer'),
        drain: async () => {
          note('drain consumer');
          await odd.drainConsumer?.();
        },
      };
    },
  });
  const parts = new Parts(service.parts, log);
  onTestFinished(async () => {
    vi.useRealTimers();
    connections.close();
    await parts.drain();
  });
  return { service, parts, events, onWire, model, connections, consumer: consumerOptions! as ConsumerOptions };
}

const running = new AbortController().signal;
const never = () => new Promise<void>(() => {});

describe('the service', () => {
  test('drains what takes work before what does it, and closes the queue last', async () => {
    const { parts, events } = openTestService();
    await parts.start(running);
    expect(events.splice(0)).toEqual(['open queue', 'start sender', 'start consumer']);
    await parts.drain();
    expect(events).toEqual(['drain consumer', 'drain sender', 'close queue']);
  });

  test('stops to watch the runs after their chunks were returned, and before the requests are closed', () => {
    const { service } = openTestService();
    expect(service.parts.map(({ name }) => name)).toEqual([
      'queue',
      'actions',
      'answers with a body',
      'target sender',
      'watch',
      'waiting runs',
      'consumer',
    ]);
  });

  test('removes a queue of its own before and after, and looks for no runs of others', async () => {
    const { service, parts, events } = openTestService({
      options: { queueName: ownQueueName('r') },
    });
    expect(service.parts.map(({ name }) => name)).toEqual([
      'queue',
      'actions',
      'answers with a body',
      'target sender',
      'watch',
      'consumer',
    ]);
    await parts.start(running);
    expect(events.splice(0)).toEqual(['open queue', 'remove queue', 'start sender', 'start consumer']);
    await parts.drain();
    expect(events).toEqual(['drain consumer', 'drain sender', 'remove queue', 'close queue']);
  });

  test('leaves a queue behind that neither can be removed nor closes, each after 300 ms', async () => {
    let isStuck = false;
    const stuck = () => (isStuck ? never() : Promise.resolve());
    const { parts } = openTestService({
      options: { queueName: ownQueueName('r') },
      queue: { remove: stuck, close: stuck },
    });
    await parts.start(running);
    isStuck = true;
    const drained = parts.drain();
    await vi.advanceTimersByTimeAsync(599);
    expect(parts.state).toBe('draining');
    await vi.advanceTimersByTimeAsync(1);
    await drained;
    expect(parts.state).toBe('drained');
  });

  test.each([
    ['as long as a request may take, and 700 ms', 3_000, 3_700],
    ['10.7 s where a request may take longer', 60_000, 10_700],
  ])('waits for the chunks in hand for %s', async (_, requestTimeoutMs, ms) => {
    const lane = { requestTimeoutMs, ca: null, proxy: null };
    const { parts, events } = openTestService({ options: { connection: lane }, drainConsumer: never });
    await parts.start(running);
    const drained = parts.drain();
    await vi.advanceTimersByTimeAsync(ms - 1);
    expect(events).not.toContain('drain sender');
    await vi.advanceTimersByTimeAsync(1);
    await drained;
    expect(events.slice(-2)).toEqual(['drain sender', 'close queue']);
  });
});

describe('a chunk in hand', () => {
  test('is merged and returned while the service drains: what is on the wire is waited for', async () => {
    const stopping = new AbortController();
    let handled: Promise<unknown> = Promise.resolve();
    const { parts, consumer, onWire, model, events } = openTestService({
      drainConsumer: async () => {
        stopping.abort();
        await handled;
        events.push('returned');
      },
    });
    await parts.start(running);
    handled = consumer.handle({ run: 'r', chunk: 0 }, stopping.signal);
    await vi.advanceTimersByTimeAsync(200);
    expect(onWire).toHaveLength(2);
    const drained = parts.drain();
    await vi.advanceTimersByTimeAsync(1_000);
    expect(events).not.toContain('drain sender');
    for (const done of onWire) done(noContent);
    await vi.advanceTimersByTimeAsync(100);
    await drained;
    expect(events.slice(-4)).toEqual(['drain consumer', 'returned', 'drain sender', 'close queue']);
    expect(model.counts.deleted).toBe(2);
    expect(model.open.size).toBe(0);
  });

  test('whose results Redis does not take is given up when its time to drain is over', async () => {
    const stopping = new AbortController();
    let handled: Promise<unknown> = Promise.resolve();
    const { parts, consumer, events } = openTestService({
      ledger: { update: () => Promise.reject(new Error('Redis is away')) },
      drainConsumer: async () => {
        stopping.abort();
        await handled;
        events.push('given up');
      },
    });
    await parts.start(running);
    handled = consumer.handle({ run: 'r', chunk: 0 }, stopping.signal);
    await vi.advanceTimersByTimeAsync(200);
    const drained = parts.drain();
    await vi.advanceTimersByTimeAsync(3_399);
    expect(events).not.toContain('given up');
    await vi.advanceTimersByTimeAsync(1);
    await vi.waitFor(() => expect(events).toContain('given up'));
    await drained;
    await expect(handled).resolves.toBe('done');
  });
});

describe('another chunk is taken', () => {
  test('while there is nothing against it', () => {
    expect(openTestService().consumer.canTakeMore()).toBe(true);
  });

  test.each<[string, Odd, boolean]>([
    [
      'not while all is stopped',
      { stop: { by: 'operator', reason: '', at: 0, who: '' } as unknown as OpenTargetSender['stop'] },
      false,
    ],
    ['not while the target wants us to wait for more than 5 s', { throttledMs: 5_001 }, false],
    ['while it wants us to wait for 5 s', { throttledMs: 5_000 }, true],
  ])('%s', (_, odd, isTaken) => {
    expect(openTestService(odd).consumer.canTakeMore()).toBe(isTaken);
  });

  test('not while Redis rejects writes', async () => {
    const refused = Object.assign(new Error('OOM command not allowed when used memory > maxmemory.'), {
      name: 'ReplyError',
    });
    const { consumer, parts, service } = openTestService({ ledger: { claim: () => Promise.reject(refused) } });
    await parts.start(running);
    await consumer.handle({ run: 'r', chunk: 0 }, running);
    expect(service.writeRejection).not.toBe('');
    expect(consumer.canTakeMore()).toBe(false);
  });
});

test('a chunk that was put back gets a new job, and the due chunk of a run is enqueued', async () => {
  const { consumer, events, model } = openTestService();
  consumer.requeue({ run: 'r', chunk: 0 });
  model.open.clear();
  model.deferred.set(0, 0);
  consumer.onDue('r');
  await vi.advanceTimersByTimeAsync(0);
  expect(events).toEqual(['add 1', 'add 1']);
  expect([...model.open.keys()]).toEqual([0]);
});
