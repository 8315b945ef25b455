import { longestWaitMs } from '../delete/chunk-pass.ts';
import type { DeleteWork } from '../delete/delete-chunk.ts';
import { RequestMeter } from '../delete/meters.ts';
import { readRunning } from '../ledger/list-runs.ts';
import { addMeasures } from '../ledger/measures.ts';
import { openPaceCalls } from '../limiter/run-pace.ts';
import type { Log } from '../logger.ts';
import type { Resource } from '../model/outcome.ts';
import { type Consumer, jobsAtMost, openConsumer } from '../queue/consumer.ts';
import { createFeeder, type Feeder } from '../queue/feeder.ts';
import { type ChunkQueue, openQueue, sharedQueueName } from '../queue/queue.ts';
import { within } from '../queue/within.ts';
import type { QueueConnection } from '../redis/connect.ts';
import { keys } from '../redis/keys.ts';
import { followWrites } from '../redis/writes.ts';
import { startToken } from '../token/open-token.ts';
import type { Token } from '../token/token.ts';
import { chunkHandler, followToken, logTrouble, runStopper } from './chunk-handler.ts';
import { type Part, repeat } from './parts.ts';
import { openRoads, type Roads, type RoadsOptions } from './roads.ts';
import { RunWatch } from './run-watch.ts';

export type ServiceOptions = RoadsOptions & {
  queueConnection: QueueConnection;
  queueName: string;
  retryDelaysMs: readonly number[];
  patienceMs: number;
};

/** What deletes in a process. */
export type Service = {
  queue: ChunkQueue;
  feeder: Feeder;
  roads: Roads;
  token: Token;
  meters: Record<Resource, RequestMeter>;
  /** Why Redis refuses what this process writes; '' = it doesn't. */
  readonly refused: string;
  /** How long runs had to wait here because nothing might leave, in ms. */
  readonly heldMs: number;
  /** In the order in which they start. The token is none of them: what else a process does may need it first. */
  parts: readonly Part[];
};

const longestDrainMs = 10_000; // for what is on the wire, also where a request may take longer
const drainSpareMs = 400; // beyond that: to hand back what was on the wire
const closeMs = 300;
const lookAroundEveryMs = 500;

/** Puts the parts together; `Parts` starts and drains them. */
export function openService(options: ServiceOptions): Service {
  const { ledger, target, log, token } = options;
  const clock = () => performance.now();
  const giveUp = new AbortController();
  const wakers = new Set<() => void>();
  const awaken = () => wakeAll(wakers, Math.random());
  const writes = followWrites(clock, (refused) => tellRefusal(refused, log));
  const { halt, halted, pauseAll, drop } = runStopper({ ledger, writes, log, watch: () => watch });
  const roads = openRoads(options, { clock, writes, onChange: awaken, tooLong: pauseAll });
  const askPace = openPaceCalls(ledger.redis);
  const watch = new RunWatch({
    ask: (run, call) => askPace(paceKeys(run), call),
    clock,
    halted,
    onChange: awaken,
    surroundings: () => ({
      isHeld: roads.hold !== null,
      limit: roads.limit,
      refreshes: token.refreshes,
    }),
    hold: (run, process) => ledger.hold(run, process, options.lane.requestTimeoutMs),
    store: (run, changes) => addMeasures(ledger.redis, run, changes),
  });
  const address = { fp: target.fp, name: options.queueName, connection: options.queueConnection };
  const queue = openQueue(address);
  const feeder = createFeeder(ledger, queue);
  const meters = { annotations: new RequestMeter(), views: new RequestMeter() };
  const work: DeleteWork = {
    ...options,
    writes,
    roads: roads.of,
    meters,
    wakers,
    basePath: new URL(target.baseUrl).pathname.replace(/\/$/, ''),
    clock,
    random: Math.random,
    giveUp: giveUp.signal,
    halt,
    halted,
    isRunShutOut: () => watch.chunks > jobsAtMost / 2 && waiting.isOne,
    fed: (run, chunks) => feeder.add(run, chunks).catch((error) => logTrouble(work, error)),
  };
  const credentials = followToken(token, { changed: roads.pump, runs: () => watch.runs, halt });
  const waiting = new WaitingRuns(
    () => readRunning(ledger.redis, target.fp),
    () => watch.chunks > 0,
    (run) => watch.isAtWork(run) || watch.waitsForPermit(run),
  );
  const isCrowded = () => roads.all.every(({ lanes }) => lanes.isCrowded(watch.chunks));
  const consumer = openConsumer({
    address,
    canTakeMore: () =>
      roads.stop === null &&
      writes.refused === '' &&
      roads.all.some(({ lanes, limits }) => limits.holdMs <= longestWaitMs && lanes.letIn(watch.chunks, waiting.isOne)),
    handle: chunkHandler({ work, watch, credentials, isCrowded, drop }),
    putBack: ({ run, chunk }) => work.fed(run, [chunk]),
    isDue: (run: string) => void feeder.feed(run).catch((error) => logTrouble(work, error)),
    log,
  });
  const isOwn = options.queueName !== sharedQueueName;
  const drainAtMostMs = Math.min(options.lane.requestTimeoutMs, longestDrainMs) + drainSpareMs;
  const parts = [
    queuePart(queue, isOwn),
    { name: 'roads', start: roads.start, drain: roads.close },
    { name: 'watch', start: () => watch.start(), drain: () => watch.stop() },
    ...(isOwn ? [] : [repeat('waiting runs', lookAroundEveryMs, () => waiting.look(), log)]),
    { name: 'consumer', start: consumer.start, drain: () => drainConsumer(consumer, giveUp, drainAtMostMs) },
  ];
  return {
    ...{ queue, feeder, roads, token, meters, parts },
    get refused() {
      return writes.refused;
    },
    get heldMs() {
      return watch.heldMs;
    },
  };
}

function tellRefusal(refused: string, log: Log): void {
  if (refused === '') log.warn({}, 'Redis takes writes again');
  else log.warn({ reason: `Redis refuses writes: ${refused}` }, 'nothing is sent any more');
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
      if (isOwn) await within(closeMs, queue.remove());
      await within(closeMs, queue.close());
    },
  };
}

/** Sends nothing more from now on, waits for what is on the wire, and hands all chunks back; bounded also while Redis is away. */
async function drainConsumer(consumer: Consumer, giveUp: AbortController, deadlineMs: number): Promise<void> {
  const timer = setTimeout(() => giveUp.abort(), deadlineMs);
  await within(deadlineMs + closeMs, consumer.drain());
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

  get isOne(): boolean {
    return this.#running.some((run) => !this.#isServed(run));
  }

  /**
   * Asks which runs there are; without an answer it goes by the last one. A process that has nothing in hand takes what comes, and need not
   * know.
   */
  async look(): Promise<void> {
    if (!this.#hasWork()) return;
    this.#running = await this.#readRunning().catch(() => this.#running);
  }
}
