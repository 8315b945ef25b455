import type { RedisOptions } from 'ioredis';
import { longestWaitMs } from '../delete/chunk-pass.ts';
import { type DeleteWork, deleteChunk } from '../delete/delete-chunk.ts';
import type { LaneOptions } from '../delete/send-delete.ts';
import { ExpungeError, messageOf } from '../errors.ts';
import type { Ledger, SeenState, Steering } from '../ledger/ledger.ts';
import { addMeasures } from '../ledger/measures.ts';
import type { HaltCode } from '../ledger/run.ts';
import type { Target } from '../ledger/target.ts';
import type { Rate } from '../limiter/rate.ts';
import { openPaceCalls } from '../limiter/run-pace.ts';
import type { Log } from '../logger.ts';
import { type Consumer, openConsumer } from '../queue/consumer.ts';
import { createFeeder, type Feeder } from '../queue/feeder.ts';
import { type ChunkJob, type ChunkQueue, openQueue, sharedQueueName } from '../queue/queue.ts';
import { within } from '../queue/within.ts';
import { keys } from '../redis/keys.ts';
import type { Token } from '../token/token.ts';
import { type Credentials, followToken } from './credentials.ts';
import { openRoads, type Roads } from './roads.ts';
import { RunWatch } from './run-watch.ts';

export type ServiceOptions = {
  ledger: Ledger;
  queueConnection: RedisOptions;
  target: Target;
  queueName: string;
  token: Token;
  lane: Omit<LaneOptions, 'origin'>;
  maxConcurrency: number;
  /** Of all requests to the target, over all processes; null = what is learned. */
  rate: Rate | null;
  burst: number | null;
  /** The target limits annotations and views apart. */
  separateLimits: boolean;
  retryDelaysMs: readonly number[];
  patienceMs: number;
  /** While this file exists nothing leaves; null = none is looked for. */
  stopFile: string | null;
  log: Log;
};

/** The parts of a process that deletes. */
export type Service = {
  queue: ChunkQueue;
  feeder: Feeder;
  roads: Roads;
  token: Token;
  start(): void;
  /** Sends nothing more from now on, waits for what is on the wire, and hands all chunks back; bounded also while Redis is away. */
  drain(): Promise<void>;
  /** Leaves the queue, after `drain`. One that only this process consumes is removed: the ledger knows what is left to do. */
  close(): Promise<void>;
};

const drainSpareMs = 500; // beyond the request time-out: to hand back what was on the wire
const closeMs = 400;
const postponedMs = 500; // until a chunk is offered again whose run has enough in hand

/**
 * Puts the parts together. They start in the order watch, consumer, and drain in the order watch (all gates close), consumer (what is
 * in hand ends), lanes; the queue is closed last.
 */
export function openService(options: ServiceOptions): Service {
  const { ledger, target, log } = options;
  const clock = () => performance.now();
  const [giveUp, stopping] = [new AbortController(), new AbortController()];
  const wakers = new Set<() => void>();
  const awaken = () => wakeAll(wakers, Math.random());
  const roads = openRoads(options, { clock, onChange: awaken, tooLong: (reason) => pauseAll(options, watch, reason) });
  const askPace = openPaceCalls(ledger.redis);
  const watch = new RunWatch({
    ask: (run, call) => askPace(paceKeys(run), call),
    clock,
    onChange: awaken,
    surroundings: () => ({
      isHeld: roads.hold !== null || options.token.waiting !== '',
      limit: roads.limit,
      refreshes: options.token.refreshes,
    }),
    store: (run, changes) => addMeasures(ledger.redis, run, changes),
  });
  const address = { fp: target.fp, name: options.queueName, connection: options.queueConnection };
  const queue = openQueue(address);
  const isOwnQueue = options.queueName !== sharedQueueName;
  const feeder = createFeeder(ledger, queue, Date.now);
  const halt = haltOnce(options, watch);
  const work: DeleteWork = {
    ...options,
    roads: roads.of,
    wakers,
    basePath: new URL(target.baseUrl).pathname.replace(/\/$/, ''),
    clock,
    now: Date.now,
    random: Math.random,
    giveUp: giveUp.signal,
    halt,
    fed: (run, chunks) => feeder.add(run, chunks).catch((error) => logTrouble(log, error)),
  };
  const credentials = followToken(options.token, { changed: roads.pump, runs: () => watch.runs, halt });
  // Its chunk stays open meanwhile: if this process ends, the tender brings the job back.
  const postpone = ({ run, chunk }: ChunkJob) =>
    void setTimeout(() => stopping.signal.aborted || work.fed(run, [chunk]), postponedMs).unref();
  const handle = (job: ChunkJob, stop: AbortSignal) => handleChunk(job, stop, work, watch, credentials, postpone);
  const canTakeMore = () =>
    roads.stop === null && roads.all.some(({ lanes, limits }) => limits.holdMs <= longestWaitMs && lanes.letIn());
  const isDue = (run: string) => void feeder.feed(run).catch((error) => logTrouble(log, error));
  const consumer = openConsumer({ address, canTakeMore, handle, isDue, log });
  return {
    queue,
    feeder,
    roads,
    token: options.token,
    start: () => {
      roads.start();
      watch.start();
      consumer.start();
    },
    drain: () => {
      stopping.abort();
      return drain({ consumer, watch, roads, giveUp }, options.lane.requestTimeoutMs + drainSpareMs);
    },
    close: async () => {
      if (isOwnQueue) await within(closeMs, queue.remove());
      await within(closeMs, queue.close());
    },
  };
}

async function handleChunk(
  { run, chunk }: ChunkJob,
  stop: AbortSignal,
  work: DeleteWork,
  watch: RunWatch,
  credentials: Credentials,
  postpone: (job: ChunkJob) => void,
): Promise<boolean> {
  if (!(await credentials.areGood(run))) return false;
  if (watch.isFull(run)) {
    postpone({ run, chunk });
    return false;
  }
  const { gate, line, meter } = watch.enter(run);
  try {
    const { state, isDue } = await deleteChunk({ run, chunk, gate, line, meter, stop }, work);
    work.log.debug({ run, chunk, state }, 'chunk left');
    if (state === 'missing') work.halt(run, 'ledger_lost', 'Redis has lost a part of this run');
    return isDue;
  } catch (error) {
    if (error instanceof ExpungeError) work.halt(run, 'ledger_lost', error.message);
    else logTrouble(work.log, error);
    return false;
  } finally {
    watch.leave(run, gate);
  }
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

/** The server asked to wait for longer than anybody should without being asked. Whoever looks at the runs decides. */
function pauseAll({ ledger, log }: ServiceOptions, watch: RunWatch, reason: string): void {
  for (const run of watch.runs) {
    watch.close(run);
    log.warn({ run, reason }, 'pausing the run');
    ledger
      .steer(run, Date.now(), { action: 'pause', reason, by: 'guard', who: '' })
      .catch((error) => logTrouble(log, error));
  }
}

/** A halt for each run once: hundreds of requests may notice the same thing. */
function haltOnce({ ledger, log }: ServiceOptions, watch: RunWatch): DeleteWork['halt'] {
  const halting = new Set<string>();
  return (run: string, code: HaltCode, reason: string) => {
    watch.close(run);
    if (halting.has(run)) return;
    halting.add(run);
    log.error({ run, code, reason }, 'halting the run');
    const steering: Steering = { action: 'halt', reason, by: 'guard', who: '', halt: code };
    ledger
      .steer(run, Date.now(), steering)
      .then((states: [SeenState, SeenState]) => log.debug({ run, states }, 'halted'))
      .catch((error) => logTrouble(log, error))
      .finally(() => halting.delete(run));
  };
}

type Parts = { consumer: Consumer; watch: RunWatch; roads: Roads; giveUp: AbortController };

async function drain({ consumer, watch, roads, giveUp }: Parts, deadlineMs: number): Promise<void> {
  const timer = setTimeout(() => giveUp.abort(), deadlineMs);
  watch.stop();
  await within(deadlineMs + closeMs, consumer.drain());
  clearTimeout(timer);
  roads.close();
}

function logTrouble(log: Log, error: unknown): void {
  log.warn({ reason: messageOf(error) }, 'Redis did not answer, trying again later');
}
