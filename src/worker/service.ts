import { setTimeout as sleep } from 'node:timers/promises';
import { maxWaitMs } from '../delete/chunk-pass.ts';
import type { DeleteDeps, Takeover } from '../delete/delete-chunk.ts';
import { RequestMeter } from '../delete/meters.ts';
import { RefusedIds } from '../delete/refused-ids.ts';
import { noteHistory } from '../history/history.ts';
import { shareForm } from '../ledger/answer-forms.ts';
import { storeBodies } from '../ledger/bodies.ts';
import { readRunning } from '../ledger/list-runs.ts';
import { addMeasures } from '../ledger/measures.ts';
import { openPaceCalls } from '../limiter/run-pace.ts';
import { readSilent } from '../limiter/stop.ts';
import type { Log } from '../logger.ts';
import { perResource, type Resource } from '../model/resource.ts';
import { growNewSpace } from '../new-space.ts';
import { type Consumer, maxJobs, openConsumer } from '../queue/consumer.ts';
import { createEnqueuer, type Enqueuer } from '../queue/enqueuer.ts';
import { type ChunkQueue, openQueue } from '../queue/queue.ts';
import { isConsumed, type QueueName, runOfQueue, sharedQueueName } from '../queue/queues.ts';
import type { RedisClient } from '../redis/client.ts';
import type { QueueConnection } from '../redis/connect.ts';
import type { Spans } from '../redis/distance.ts';
import { keys } from '../redis/keys.ts';
import { trackWrites } from '../redis/writes.ts';
import { startToken } from '../token/open-token.ts';
import type { Token } from '../token/token.ts';
import { withTimeout } from '../wait.ts';
import { BodyCounter } from './body-counter.ts';
import { chunkHandler, watchCredentials } from './chunk-handler.ts';
import { type KnownActions, openKnownActions } from './known-actions.ts';
import { type Part, repeat } from './parts.ts';
import { logRedisError, runStopper } from './run-stopper.ts';
import { RunWatch } from './run-watch.ts';
import { type OpenTargetSender, openTargetSender, type TargetSenderOptions } from './target-sender.ts';

export type ServiceOptions = TargetSenderOptions & {
  queueConnection: QueueConnection;
  queueName: string;
  retryDelaysMs: readonly number[];
  unreachableTimeoutMs: number;
};

/** The parts of a process that delete, and the values that other parts read from them. */
export type Service = {
  enqueuer: Enqueuer;
  sender: OpenTargetSender;
  token: Token;
  meters: Record<Resource, RequestMeter>;
  actions: Pick<KnownActions, 'losses'>;
  /** The number of chunks that this process has taken over from a process that never returned them. */
  readonly takeovers: number;
  /** Why Redis rejects the writes of this process; '' = it accepts them. */
  readonly writeRejection: string;
  /** The time for which runs had to wait here because sending was not allowed, in ms. */
  readonly heldMs: number;
  /**
   * The parts in the order in which they start, the queue first. The token is not among them, because other parts of the process may need it first.
   */
  parts: readonly Part[];
};

const maxRequestDrainMs = 10_000; // for the requests in flight, even if the request timeout is longer
const drainSpareMs = 400; // after that: to return the chunks of requests in flight
const closeMs = 300;
const storeMs = 1_000; // for the last measures of its runs
const refreshEveryMs = 500;
const flushEveryMs = 500;

/** The functions that open the parts which reach beyond this process. */
type Openers = {
  openTargetSender: typeof openTargetSender;
  openQueue: typeof openQueue;
  openConsumer: typeof openConsumer;
  openKnownActions: typeof openKnownActions;
};

/** Makes the parts and connects them. Starts nothing, because `Parts` does that. */
export function openService(
  options: ServiceOptions,
  { openTargetSender, openQueue, openConsumer, openKnownActions }: Openers = openers,
): Service {
  growNewSpace();
  const { ledger, target, log, token } = options;
  const clock = () => performance.now();
  const shutdownDeadline = new AbortController();
  let takeovers = 0;
  const wakers = new Set<() => void>();
  const wakeWaiters = () => wakeAll(wakers, Math.random());
  const writes = trackWrites(clock, (rejection) => logRejection(rejection, log));
  const { halt, halted, pauseAll, abandon } = runStopper({ ledger, writes, log, watch: () => watch });
  const isShared = options.queueName === sharedQueueName;
  const actions = openKnownActions({ ledger, target, isShared, log, onChange: () => sender.pump() });
  const sender: OpenTargetSender = openTargetSender(options, {
    run: runOfQueue(options.queueName),
    clock,
    writes,
    actions,
    onChange: wakeWaiters,
    onLongThrottle: pauseAll,
  });
  const { distance } = sender.limits;
  const bodies = new BodyCounter((run, counter, answers) => storeBodies(ledger.redis, run, counter, answers));
  const askPace = openPaceCalls(ledger.redis);
  const watch = new RunWatch({
    ask: (run, call) => askPace(paceKeys(run), call),
    clock,
    distance,
    isAlone: !isShared, // the queue of a run has one consumer
    halted,
    saw: (run, state) => actions.sawRun(run, state),
    overdue: (run) => void enqueuer.enqueue(run).catch((error) => logRedisError(deleting, error)),
    waits: (run, reason) => log.warn({ run, reason }, 'waiting'),
    onChange: wakeWaiters,
    conditions: () => ({
      isHeld: sender.hold !== null,
      limit: sender.limit,
      refreshes: token.refreshes,
    }),
    keepalive: (run, process) => ledger.keepalive(run, process, options.connection.requestTimeoutMs),
    shareForm: (run, name, form) => shareForm(ledger.redis, run, name, form),
    store: async (run, { changes, slices }) => {
      await addMeasures(ledger.redis, run, changes);
      await noteHistory(ledger.redis, run, { limit: sender.limit, hold: sender.hold?.reason ?? '', slices });
    },
  });
  const address = { fp: target.fp, name: options.queueName, connection: options.queueConnection };
  const queue = openQueue(address);
  const enqueuer = createEnqueuer(ledger, queue);
  const meters = perResource(() => new RequestMeter());
  const deleting: DeleteDeps = {
    ...options,
    writes,
    sender,
    meters,
    wakers,
    refusedIds: new RefusedIds(clock),
    basePath: new URL(target.baseUrl).pathname.replace(/\/$/, ''),
    clock,
    sleep: (ms, ended) => sleep(ms, true, { signal: ended }).catch(() => false),
    random: Math.random,
    shutdownDeadline: shutdownDeadline.signal,
    halt,
    onHalted: halted,
    isAnyRunStarved: () => watch.chunks > maxJobs / 2 && waiting.hasAny,
    onTakeover: (takeover) => {
      takeovers += 1;
      void logTakeover(takeover, { redis: ledger.redis, fp: target.fp, log });
    },
    noteBody: (run) => bodies.note(run),
    addJobs: (run, chunks) => enqueuer.addJobs(run, chunks).catch((error) => logRedisError(deleting, error)),
  };
  const credentials = watchCredentials(token, { changed: sender.pump, runs: () => watch.runs, halt });
  const waiting = new WaitingRuns(
    () => readRunning(ledger.redis, target.fp),
    () => watch.chunks > 0,
    (run) => watch.hasChunks(run) || watch.waits(run),
  );
  const isSaturated = () => sender.connections.isSaturated(watch.chunks);
  const handle = chunkHandler({ deleting, watch, credentials, actions, isSaturated, abandon });
  const consumer = openConsumer({
    address,
    canTakeMore: () =>
      sender.stop === null &&
      writes.rejection === '' &&
      sender.limits.throttledMs <= maxWaitMs &&
      sender.connections.admit(watch.chunks, waiting.hasAny),
    handle: (job, stop) => handle(job, stop).finally(() => sender.connections.chunkEnded()),
    distance,
    requeue: ({ run, chunk }) => deleting.addJobs(run, [chunk]),
    onDue: (run: string) => void enqueuer.enqueue(run).catch((error) => logRedisError(deleting, error)),
    log,
  });
  const maxDrainMs = () =>
    Math.min(options.connection.requestTimeoutMs, maxRequestDrainMs) + drainSpareMs + 2 * distance.answerMs;
  const parts: Service['parts'] = [
    queuePart(queue, isShared ? null : { redis: ledger.redis, ...address }, distance),
    actions.part,
    bodyPart(bodies, log, distance),
    { name: 'target sender', start: (pulse) => sender.start(pulse), drain: sender.close },
    watchPart(watch, distance),
    ...(isShared ? [repeat('waiting runs', refreshEveryMs, () => waiting.refresh(), log)] : []),
    {
      name: 'consumer',
      start: (pulse) => consumer.start(pulse),
      drain: () => drainConsumer(consumer, shutdownDeadline, maxDrainMs()),
    },
  ];
  return {
    enqueuer,
    sender,
    token,
    meters,
    actions,
    parts,
    get takeovers() {
      return takeovers;
    },
    get writeRejection() {
      return writes.rejection;
    },
    get heldMs() {
      return watch.heldMs;
    },
  };
}

const openers: Openers = { openTargetSender, openQueue, openConsumer, openKnownActions };

/** `from`: processes that have gone silent, one of which had the chunk; their names begin with their hosts. */
async function logTakeover(
  takeover: Takeover,
  { redis, fp, log }: { redis: RedisClient; fp: string; log: Log },
): Promise<void> {
  const from = await readSilent(redis, fp).catch(() => []);
  log.warn({ ...takeover, from }, 'took over a chunk that another process has not returned');
}

function logRejection(rejection: string, log: Log): void {
  if (rejection === '') log.warn({}, 'Redis accepts writes again');
  else log.warn({ reason: `Redis rejects writes: ${rejection}` }, 'sending stopped');
}

/**
 * The part that gets the first token, and at its end stores a token that is being replaced. At the start, throws if the token is rejected for good.
 * Calls `onWait` with the reason if the start takes more than 2 s.
 */
export function tokenPart(token: Token, onWait: (waiting: string) => void): Part {
  return { name: 'token', start: () => startToken(token, onWait), drain: () => token.close() };
}

/** The queue. If this process owns it, it is removed at the start and at the end: the ledger knows all its contents. */
function queuePart(queue: ChunkQueue, own: (QueueName & { redis: RedisClient }) | null, distance: Spans): Part {
  const removeOwn = async () => {
    if (own !== null && (await isConsumed(own.redis, own, 'to stay')) === false) await queue.remove();
  };
  return {
    name: 'queue',
    // Jobs that a killed process left in it would block their chunks until their locks expire.
    start: async () => {
      queue.open();
      await removeOwn();
    },
    drain: async () => {
      await withTimeout(closeMs + 2 * distance.answerMs, removeOwn());
      await withTimeout(closeMs, queue.close());
    },
  };
}

/** Watches the runs. Its end waits a moment for their last measures. */
function watchPart(watch: RunWatch, distance: Spans): Part {
  return {
    name: 'watch',
    start: () => watch.start(),
    drain: async () => {
      await withTimeout(storeMs + distance.answerMs, watch.stop());
    },
  };
}

/**
 * Stores the number of answers with a body. It comes before the sender, so it drains after them: its connections may bring such a body until they
 * close.
 */
function bodyPart(bodies: BodyCounter, log: Log, distance: Spans): Part {
  const { name, start, drain } = repeat('answers with a body', flushEveryMs, () => bodies.flush(), log);
  return {
    name,
    start: (pulse) => start?.(pulse),
    drain: async () => {
      await drain?.();
      await withTimeout(closeMs + distance.answerMs, bodies.flush());
    },
  };
}

/** Stops sending, waits for requests in flight, and returns all chunks. Its time is bounded even while Redis is away. */
async function drainConsumer(consumer: Consumer, deadline: AbortController, deadlineMs: number): Promise<void> {
  const timer = setTimeout(() => deadline.abort(), deadlineMs);
  await withTimeout(deadlineMs + closeMs, consumer.drain());
  clearTimeout(timer);
}

/** Calls all wakers, starting with a random one: if there is only one permit, no chunk gets it every time. */
function wakeAll(wakers: Set<() => void>, random: number): void {
  const all = [...wakers];
  const from = Math.floor(random * all.length);
  for (const wake of [...all.slice(from), ...all.slice(0, from)]) wake();
}

function paceKeys(run: string) {
  const [members, quotas, refusals] = [keys.paceMembers(run), keys.paceQuotas(run), keys.refusals(run)];
  return { run: keys.run(run), members, quotas, refusals };
}

/**
 * Whether runs wait for their share of this process: they are running, have no leased chunk here, and do not wait for a permit of their own rate
 * (`isServed`). Only then does a saturated process take further chunks.
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

  /** Reads which runs are running; without an answer the last list stays. A process without leased chunks takes any job, so it reads nothing. */
  async refresh(): Promise<void> {
    if (!this.#hasWork()) return;
    this.#running = await this.#readRunning().catch(() => this.#running);
  }
}
