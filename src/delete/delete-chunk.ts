import { setTimeout as sleep } from 'node:timers/promises';
import { attemptsOf, type Cell, hasManyMarks, isSettled } from '../ledger/cell.ts';
import { type Claim, type Join, type Ledger, noEpoch, type SeenState } from '../ledger/ledger.ts';
import { noteDetail } from '../ledger/manifest.ts';
import { bucketOf } from '../ledger/measures.ts';
import type { HaltCode } from '../ledger/run.ts';
import type { Log } from '../logger.ts';
import { idPath } from '../model/check-id.ts';
import type { Resource } from '../model/outcome.ts';
import { redisWords } from '../redis/errors.ts';
import type { Writes } from '../redis/writes.ts';
import type { Token } from '../token/token.ts';
import { ChunkPass, longestWaitMs } from './chunk-pass.ts';
import { excerptOf, parkedForMs } from './delete-id.ts';
import type { Gate } from './gate.ts';
import type { Lanes } from './lanes.ts';
import type { RequestMeter, RetryReason, RunMeter } from './meters.ts';
import type { RunLine } from './run-line.ts';
import type { TargetLimits } from './target-limits.ts';
import { type Answer, type VerdictTable, verdictsWith } from './verdict.ts';

/** What a process brings to every chunk it works on. */
export type DeleteWork = {
  ledger: Ledger;
  writes: Writes;
  roads: Record<Resource, Road>;
  /** What this process sends and settles, for its metrics. */
  meters: Record<Resource, RequestMeter>;
  /** Called when there may be room again. */
  wakers: Set<() => void>;
  token: Token;
  basePath: string; // of the target's URL, without a slash at its end
  retryDelaysMs: readonly number[];
  patienceMs: number;
  clock: () => number; // monotonic ms
  random: () => number;
  /** Aborted when the process is about to end and waits for nothing any more. */
  giveUp: AbortSignal;
  halt(run: string, code: HaltCode, reason: string): void;
  /** The run was found halted; its gate has not been closed yet. */
  halted(run: string): void;
  /** Whether a run finds no place in this process because others hold all. */
  isRunShutOut(): boolean;
  /** These chunks became open: their jobs belong into the queue. */
  fed(run: string, chunks: number[]): void;
  log: Log;
};

/** How requests of one resource leave this process. */
export type Road = { lanes: Lanes; limits: TargetLimits };

/** A chunk of a run, and whether its requests may leave. `stop`: this process no longer holds the chunk's job. */
export type ChunkJob = {
  run: string;
  chunk: number;
  gate: Gate;
  line: RunLine;
  meter: RunMeter;
  stop: AbortSignal;
};

const redisRetryMs = 200;
const widestWindow = 256;

/**
 * How a chunk was left: the state of its run, and in how many ms its ids are due again; null: not before somebody looks through what waits for
 * a later pass.
 */
export type ChunkLeft = { state: SeenState; dueInMs: number | null };

/**
 * One pass over one chunk. Whatever happens, each id that was sent has its answer in the ledger, or its mark there says that it
 * may have been. Repeating it is harmless: settled ids are skipped, a chunk that isn't open is left alone.
 */
export async function deleteChunk(job: ChunkJob, work: DeleteWork): Promise<ChunkLeft> {
  const claim = await work.ledger.claim(job.run, job.chunk);
  if (typeof claim === 'string') return { state: claim, dueInMs: null };
  work.fed(job.run, claim.fed);
  if (claim.doubt !== '') work.log.warn({ run: job.run, reason: claim.doubt }, inDoubt);
  const { ledgerChunk, ids } = claim;
  const verdicts = verdictsWith(claim.treat);
  const pathAt = (index: number) => work.basePath + idPath(ids.resource, ids.idAt(index));
  const road = work.roads[ids.resource];
  const pass = new ChunkPass(
    ledgerChunk.cells,
    pathAt,
    dueIndexes(claim, work),
    passWork(job, claim, verdicts, road, work.meters[ids.resource], work),
  );
  road.limits.enter();
  await pass.run().finally(() => road.limits.leave());
  return handBack(job, claim, pass, road, work);
}

const inDoubt = 'from here on ids that are found gone are gone_unconfirmed, not absent';

/** Whoever fed the chunk found something due. If nothing is, another Redis with another clock took over: then the ids that wait shortest are. */
function dueIndexes({ ledgerChunk: { cells }, passedMs }: Claim, { retryDelaysMs }: DeleteWork): number[] {
  const waitsMs = cells.map((cell) =>
    isSettled(cell) ? Number.POSITIVE_INFINITY : parkedForMs(attemptsOf(cell), retryDelaysMs),
  );
  const shortest = waitsMs.reduce((least, wait) => Math.min(least, wait), Number.MAX_VALUE);
  const longest = Math.max(shortest, passedMs);
  return [...waitsMs.keys()].filter((index) => waitsMs[index]! <= longest);
}

function passWork(
  { run, chunk, gate, line, meter, stop }: ChunkJob,
  claim: Claim,
  verdicts: VerdictTable,
  { lanes, limits }: Road,
  requests: RequestMeter,
  work: DeleteWork,
) {
  const { ledger, log } = work;
  return {
    ...work,
    verdicts,
    limits,
    way: line.to(lanes),
    window: Math.min(widestWindow, Math.max(16, 4 * lanes.size)),
    isOpen: () => gate.isOpen,
    closed: AbortSignal.any([gate.closed, stop]),
    isInTheWay: () => line.perSecond !== null && work.isRunShutOut(),
    halt: (code: HaltCode, reason: string) => work.halt(run, code, reason),
    step: async (joins: Join[], wanted: number[]) => {
      const grant = await persist(async (n) => {
        const epoch = (await ledger.stillHolds(run, claim)) ? claim.epoch : noEpoch;
        // A repeated step asks for no marks: by then this process may have lost the chunk.
        return ledger.step(run, chunk, epoch, joins, n === 1 ? wanted : []);
      }, work);
      requests.joined(joins);
      // Whoever hears first that the run stands still stops the other chunks of this process, too.
      if (grant.state === 'halted' && !gate.closed.aborted) work.halted(run);
      if (grant.state !== 'running' && grant.state !== 'stale') gate.close();
      return grant;
    },
    measure: (answer: Answer, ms: number) => {
      const bucket = bucketOf(ms);
      meter.answered(answer, bucket);
      requests.answered(answer, ms, bucket);
    },
    retried: (reason: RetryReason) => requests.retried(reason),
    note: (index: number, cell: Cell, answer: Parameters<typeof excerptOf>[0]) => {
      noteDetail(ledger.redis, run, { chunk, index, cell, excerpt: excerptOf(answer) }).catch((error) => {
        log.debug({ run, chunk, err: error }, 'an error excerpt was not stored');
      });
    },
  };
}

async function handBack(
  { run, chunk, line }: ChunkJob,
  claim: Claim,
  { cells, waitsUntil }: ChunkPass,
  { limits }: Road,
  work: DeleteWork,
): Promise<ChunkLeft> {
  const waits = cells.flatMap((cell, index) => {
    if (isSettled(cell)) return [];
    return Math.max(parkedForMs(attemptsOf(cell), work.retryDelaysMs), (waitsUntil.get(index) ?? 0) - work.clock());
  });
  // Not due at the end of a longer wait: an operator may lift a hold, or change the run's rate, and then nobody would come before that.
  const holdMs = Math.min(limits.holdMs, longestWaitMs);
  const permitMs = line.waitMs > longestWaitMs ? longestWaitMs : 0;
  let dueInMs = waits.length === 0 ? null : Math.max(holdMs, permitMs, Math.min(...waits));
  const state = await persist(async () => {
    // What Redis acknowledged here it may have lost since, so whoever takes the chunk next has to look.
    if (!(await work.ledger.stillHolds(run, claim))) dueInMs = 0;
    return work.ledger.handBack(run, chunk, claim.epoch, dueInMs, cells.some(hasManyMarks));
  }, work);
  const isSoon = dueInMs !== null && dueInMs <= permitMs;
  return { state, dueInMs: state === 'running' && isSoon ? dueInMs : null };
}

/** Results in hand are worth waiting for: without them ids that were deleted could only be called gone. */
async function persist<T>(write: (n: number) => Promise<T>, { writes, giveUp, log }: DeleteWork): Promise<T> {
  for (let n = 1; ; n++) {
    try {
      return await write(n);
    } catch (error) {
      const isRefused = writes.failed(error);
      if (giveUp.aborted) throw error;
      if (n === 1 && !isRefused) log.warn({ reason: redisWords(error) }, 'Redis does not take results, trying again');
      await sleep(redisRetryMs, undefined, { signal: giveUp }).catch(() => {});
    }
  }
}
