import type { RedisOptions } from 'ioredis';
import { Brake } from '../delete/brake.ts';
import { longestWaitMs } from '../delete/chunk-pass.ts';
import { type DeleteWork, deleteChunk } from '../delete/delete-chunk.ts';
import { Lanes } from '../delete/lanes.ts';
import { Lane, type LaneOptions } from '../delete/send-delete.ts';
import type { Token } from '../delete/token.ts';
import { ExpungeError, messageOf } from '../errors.ts';
import type { Ledger, SeenState, Steering } from '../ledger/ledger.ts';
import type { HaltCode } from '../ledger/run.ts';
import type { Target } from '../ledger/target.ts';
import type { Log } from '../logger.ts';
import { type Consumer, openConsumer } from '../queue/consumer.ts';
import { createFeeder, type Feeder } from '../queue/feeder.ts';
import { type ChunkJob, type ChunkQueue, openQueue, sharedQueueName } from '../queue/queue.ts';
import { within } from '../queue/within.ts';
import { RunWatch } from './run-watch.ts';

export type ServiceOptions = {
  ledger: Ledger;
  queueConnection: RedisOptions;
  target: Target;
  queueName: string;
  token: Token;
  lane: Omit<LaneOptions, 'origin'>;
  maxConcurrency: number;
  retryDelaysMs: readonly number[];
  patienceMs: number;
  log: Log;
};

/** The parts of a process that deletes. */
export type Service = {
  queue: ChunkQueue;
  feeder: Feeder;
  lanes: Lanes;
  brake: Brake;
  start(): void;
  /** Sends nothing more from now on, waits for what is on the wire, and hands all chunks back; bounded also while Redis is away. */
  drain(): Promise<void>;
  /** Leaves the queue, after `drain`. One that only this process consumes is removed: the ledger knows what is left to do. */
  close(): Promise<void>;
};

const drainSpareMs = 500; // beyond the request time-out: to hand back what was on the wire
const closeMs = 400;

/**
 * Puts the parts together. They start in the order watch, consumer, and drain in the order watch (all gates close), consumer (what is
 * in hand ends), lanes; the queue is closed last.
 */
export function openService(options: ServiceOptions): Service {
  const { ledger, target, log } = options;
  const clock = () => performance.now();
  const giveUp = new AbortController();
  const url = new URL(target.baseUrl);
  const brake = new Brake(clock, Math.random);
  const lanes = new Lanes(options.maxConcurrency, () => new Lane({ ...options.lane, origin: url.origin }), clock);
  const watch = new RunWatch(ledger.redis, clock, () => lanes.review());
  const address = { fp: target.fp, name: options.queueName, connection: options.queueConnection };
  const queue = openQueue(address);
  const isOwnQueue = options.queueName !== sharedQueueName;
  const feeder = createFeeder(ledger, queue, Date.now);
  const halt = haltOnce(options, watch);
  const work: DeleteWork = {
    ...options,
    lanes,
    brake,
    basePath: url.pathname.replace(/\/$/, ''),
    clock,
    now: Date.now,
    random: Math.random,
    giveUp: giveUp.signal,
    halt,
    fed: (run, chunks) => feeder.add(run, chunks).catch((error) => logTrouble(log, error)),
  };
  const handle = (job: ChunkJob, stop: AbortSignal) => handleChunk(job, stop, work, watch);
  const canTakeMore = () => brake.remainingMs <= longestWaitMs && lanes.letIn();
  const consumer = openConsumer({ address, canTakeMore, handle, log });
  return {
    queue,
    feeder,
    lanes,
    brake,
    start: () => {
      watch.start();
      consumer.start();
    },
    drain: () => drain({ consumer, watch, lanes, giveUp }, options.lane.requestTimeoutMs + drainSpareMs),
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
): Promise<void> {
  const gate = watch.enter(run);
  try {
    const state = await deleteChunk({ run, chunk, gate, stop }, work);
    work.log.debug({ run, chunk, state }, 'chunk left');
    if (state === 'missing') work.halt(run, 'ledger_lost', 'Redis has lost a part of this run');
  } catch (error) {
    if (error instanceof ExpungeError) work.halt(run, 'ledger_lost', error.message);
    else logTrouble(work.log, error);
  } finally {
    watch.leave(run, gate);
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

type Parts = { consumer: Consumer; watch: RunWatch; lanes: Lanes; giveUp: AbortController };

async function drain({ consumer, watch, lanes, giveUp }: Parts, deadlineMs: number): Promise<void> {
  const timer = setTimeout(() => giveUp.abort(), deadlineMs);
  watch.stop();
  await within(deadlineMs + closeMs, consumer.drain());
  clearTimeout(timer);
  lanes.close();
}

function logTrouble(log: Log, error: unknown): void {
  log.warn({ reason: messageOf(error) }, 'Redis did not answer, trying again later');
}
