import { longestWaitMs } from '../delete/chunk-pass.ts';
import type { DeleteDeps } from '../delete/delete-chunk.ts';
import { RequestMeter } from '../delete/meters.ts';
import { readRunning } from '../ledger/list-runs.ts';
import { addMeasures } from '../ledger/measures.ts';
import { openPaceCalls } from '../limiter/run-pace.ts';
import type { Log } from '../logger.ts';
import { perResource, type Resource } from '../model/resource.ts';
import { type Consumer, maxJobs, openConsumer } from '../queue/consumer.ts';
import { createFeeder, type Feeder } from '../queue/feeder.ts';
import { type ChunkQueue, openQueue, sharedQueueName } from '../queue/queue.ts';
import { withTimeout } from '../queue/with-timeout.ts';
import type { QueueConnection } from '../redis/connect.ts';
import { keys } from '../redis/keys.ts';
import { trackWrites } from '../redis/writes.ts';
import { startToken } from '../token/open-token.ts';
import type { Token } from '../token/token.ts';
import { chunkHandler, logRedisError, runStopper, watchCredentials } from './chunk-handler.ts';
import { type Part, repeat } from './parts.ts';
import { RunWatch } from './run-watch.ts';
import { openSenders, type Senders, type SendersOptions } from './senders.ts';

export type ServiceOptions = SendersOptions & {
  queueConnection: QueueConnection;
  queueName: string;
  retryDelaysMs: readonly number[];
  unreachableTimeoutMs: number;
};

/** What deletes in a process. */
export type Service = {
  queue: ChunkQueue;
  feeder: Feeder;
  senders: Senders;
  token: Token;
  meters: Record<Resource, RequestMeter>;
  /** Why Redis refuses what this process writes; '' = it doesn't. */
  readonly writeRejection: string;
  /** How long runs had to wait here because nothing might leave, in ms. */
  readonly heldMs: number;
  /** In the order in which they start. The token is none of them: what else a process does may need it first. */
  parts: readonly Part[];
};

const longestDrainMs = 10_000; // for what is on the wire, also where a request may take longer
const drainSpareMs = 400; // beyond that: to hand back what was on the wire
const closeMs = 300;
const refreshEveryMs = 500;

/** Puts the parts together; `Parts` starts and drains them. */
export function openService(options: ServiceOptions): Service {
  const { ledger, target, log, token } = options;
  const clock = () => performance.now();
  const giveUp = new AbortController();
  const wakers = new Set<() => void>();
  const wakeWaiters = () => wakeAll(wakers, Math.random());
  const writes = trackWrites(clock, (refused) => logRejection(refused, log));
  const { halt, halted, pauseAll, abandon: drop } = runStopper({ ledger, writes, log, watch: () => watch });
  const senders = openSenders(options, { clock, writes, onChange: wakeWaiters, tooLong: pauseAll });
  const askPace = openPaceCalls(ledger.redis);
  const watch = new RunWatch({
    ask: (run, call) => askPace(paceKeys(run), call),
    clock,
    halted,
    onChange: wakeWaiters,
    conditions: () => ({
      isHeld: senders.hold !== null,
      limit: senders.limit,
      refreshes: token.refreshes,
    }),
    hold: (run, process) => ledger.heartbeat(run, process, options.connection.requestTimeoutMs),
    store: (run, changes) => addMeasures(ledger.redis, run, changes),
  });
  const address = { fp: target.fp, name: options.queueName, connection: options.queueConnection };
  const queue = openQueue(address);
  const feeder = createFeeder(ledger, queue);
  const meters = perResource(() => new RequestMeter());
  const work: DeleteDeps = {
    ...options,
    writes,
    senders: senders.of,
    meters,
    wakers,
    basePath: new URL(target.baseUrl).pathname.replace(/\/$/, ''),
    clock,
    random: Math.random,
    shutdownDeadline: giveUp.signal,
    halt,
    onHalted: halted,
    isAnyRunStarved: () => watch.chunks > maxJobs / 2 && waiting.hasAny,
    enqueue: (run, chunks) => feeder.add(run, chunks).catch((error) => logRedisError(work, error)),
  };
  const credentials = watchCredentials(token, { changed: senders.pump, runs: () => watch.runs, halt });
  const waiting = new WaitingRuns(
    () => readRunning(ledger.redis, target.fp),
    () => watch.chunks > 0,
    (run) => watch.hasChunks(run) || watch.waitsForPermit(run),
  );
  const isSaturated = () => senders.all.every(({ connections }) => connections.isSaturated(watch.chunks));
  const consumer = openConsumer({
    address,
    canTakeMore: () =>
      senders.stop === null &&
      writes.rejection === '' &&
      senders.all.some(
        ({ connections, limits }) =>
          limits.throttledMs <= longestWaitMs && connections.admit(watch.chunks, waiting.hasAny),
      ),
    handle: chunkHandler({ work, watch, credentials, isSaturated, drop }),
    requeue: ({ run, chunk }) => work.enqueue(run, [chunk]),
    isDue: (run: string) => void feeder.feed(run).catch((error) => logRedisError(work, error)),
    log,
  });
  const isOwn = options.queueName !== sharedQueueName;
  const drainAtMostMs = Math.min(options.connection.requestTimeoutMs, longestDrainMs) + drainSpareMs;
  const parts = [
    queuePart(queue, isOwn),
    { name: 'senders', start: senders.start, drain: senders.close },
    { name: 'watch', start: () => watch.start(), drain: () => watch.stop() },
    ...(isOwn ? [] : [repeat('waiting runs', refreshEveryMs, () => waiting.refresh(), log)]),
    { name: 'consumer', start: consumer.start, drain: () => drainConsumer(consumer, giveUp, drainAtMostMs) },
  ];
  return {
    ...{ queue, feeder, senders, token, meters, parts },
    get writeRejection() {
      return writes.rejection;
    },
    get heldMs() {
      return watch.heldMs;
    },
  };
}

function logRejection(refused: string, log: Log): void {
  if (refused === '') log.warn({}, 'Redis accepts writes again');
  else log.warn({ reason: `Redis rejects writes: ${refused}` }, 'sending stopped');
}

/** The part that gets the first token, and stores one that is being replaced at the end. `tell` is told where that takes its time. */
export function tokenPart(token: Token, tell: (waiting: string) => void): Part {
  return { name: 'token', start: () => startToken(token, tell), drain: () => token.close() };
}

/** A queue that only this process consumes holds nothing that the ledger doesn't know: it is removed at both ends. */
function queuePart(queue: ChunkQueue, isOwn: boolean): Part {
  return {
    name: 'queue',
    // What a killed process left in it would hold chunks back until its locks run out.
    start: async () => {
      queue.open();
      if (isOwn) await queue.remove();
    },
    drain: async () => {
      if (isOwn) await withTimeout(closeMs, queue.remove());
      await withTimeout(closeMs, queue.close());
    },
  };
}

/** Sends nothing more from now on, waits for what is on the wire, and hands all chunks back; bounded also while Redis is away. */
async function drainConsumer(consumer: Consumer, giveUp: AbortController, deadlineMs: number): Promise<void> {
  const timer = setTimeout(() => giveUp.abort(), deadlineMs);
  await withTimeout(deadlineMs + closeMs, consumer.drain());
  clearTimeout(timer);
}

/** Begins with another one each time: where there is but one permit, each chunk gets it in its turn. */
function wakeAll(wakers: Set<() => void>, random: number): void {
  const all = [...wakers];
  const from = Math.floor(random * all.length);
  for (const wake of [...all.slice(from), ...all.slice(0, from)]) wake();
}

function paceKeys(run: string) {
  return { run: keys.run(run), members: keys.paceMembers(run), quotas: keys.paceQuotas(run) };
}

/**
 * Whether runs wait for their share of this process: they are running, no chunk of theirs is in hand, and their own rate is not what they
 * wait for (`isServed`). Without that no chunk is looked for beyond those that have enough to do.
 */
class WaitingRuns {
  readonly #readRunning: () => Promise<string[]>;
  readonly #hasWork: () => boolean;
  readonly #isServed: (run: string) => boolean;
  #running: string[] = [];

  constructor(readRunning: () => Promise<string[]>, hasWork: () => boolean, isServed: (run: string) => boolean) {
    this.#readRunning = readRunning;
    this.#hasWork = hasWork;
    this.#isServed = isServed;
  }

  get hasAny(): boolean {
    return this.#running.some((run) => !this.#isServed(run));
  }

  /**
   * Asks which runs there are; without an answer it goes by the last one. A process that has nothing in hand takes what comes, and need not
   * know.
   */
  async refresh(): Promise<void> {
    if (!this.#hasWork()) return;
    this.#running = await this.#readRunning().catch(() => this.#running);
  }
}
