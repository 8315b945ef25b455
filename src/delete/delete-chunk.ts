import {
  type Cell,
  type CellResult,
  countAttempts,
  hasManyMarks,
  isMarked,
  isSettled,
  readCell,
} from '../ledger/cell.ts';
import { type Claim, type Ledger, noEpoch, type ObservedState } from '../ledger/ledger.ts';
import { noteDetail } from '../ledger/manifest.ts';
import { latencyBucket } from '../ledger/measures.ts';
import { type PutBack, readPutBack, storePutBack } from '../ledger/put-back.ts';
import type { HaltCode } from '../ledger/run.ts';
import type { Log } from '../logger.ts';
import { pathMaker } from '../model/check-id.ts';
import { definitionOf, isNeverRepeated, type Resource } from '../model/resource.ts';
import { successStatus } from '../model/status.ts';
import { describeRedisError } from '../redis/errors.ts';
import type { WriteStatus } from '../redis/writes.ts';
import type { Token } from '../token/token.ts';
import { ChunkPass, maxWaitMs } from './chunk-pass.ts';
import type { ConnectionPool } from './connection-pool.ts';
import { retryDelayMs, toExcerpt } from './delete-id.ts';
import type { FirstAnswers } from './first-answers.ts';
import type { Gate } from './gate.ts';
import type { RequestMeter, RetryReason, RunMeter } from './meters.ts';
import type { Refusals } from './refusals.ts';
import type { RefusedIds } from './refused-ids.ts';
import type { RunRequestQueue } from './run-request-queue.ts';
import type { TargetLimits } from './target-limits.ts';
import { type Answer, makeVerdictTable, type VerdictTable } from './verdict.ts';

/** The dependencies of deleting a chunk; the same for every chunk of a process. */
export type DeleteDeps = {
  ledger: Ledger;
  writes: WriteStatus;
  sender: TargetSender;
  /** Meters that count what this process sends and settles, for its metrics. */
  meters: Record<Resource, RequestMeter>;
  /** Callbacks for when there may be room again; see `ChunkPass`. */
  wakers: Set<() => void>;
  token: Token;
  refusedIds: RefusedIds;
  basePath: string; // the path of the target's URL, without a slash at its end
  retryDelaysMs: readonly number[];
  unreachableTimeoutMs: number;
  clock: () => number; // monotonic ms
  /** Resolves to true after `ms`, or to false as soon as the signal is aborted. */
  sleep(ms: number, ended: AbortSignal): Promise<boolean>;
  random: () => number;
  /** Aborted when a shutdown has taken its maximum time. */
  shutdownDeadline: AbortSignal;
  halt(run: string, code: HaltCode, reason: string): void;
  /** Called when the run was found halted and its gate has not been closed yet. */
  onHalted(run: string): void;
  /** Whether a run gets no chunk in this process because other runs hold too many. */
  isAnyRunStarved(): boolean;
  /** Called when this process has taken over a chunk. */
  onTakeover(takeover: Takeover): void;
  /** Adds the jobs of chunks that became open to the queue. */
  addJobs(run: string, chunks: number[]): void;
  /** Counts a 204 that had a body for the run. */
  noteBody(run: string): void;
  log: Log;
};

/** The connections and limits for requests to the target in this process. */
export type TargetSender = { connections: ConnectionPool; limits: TargetLimits };

/** A chunk of a run, and whether its requests may be sent. `signal`: aborted when this process no longer holds the chunk's job. */
export type ChunkTask = {
  run: string;
  chunk: number;
  gate: Gate;
  requestQueue: RunRequestQueue;
  meter: RunMeter;
  refusals(resource: Resource): Refusals;
  firstAnswers: FirstAnswers;
  signal: AbortSignal;
};

const redisRetryMs = 200;
const maxBatchSize = 512;

/**
 * The state of the run after the pass, and the time in ms after which its chunks are to be enqueued again; null: not before deferred chunks are
 * checked.
 */
type ChunkResult = { state: ObservedState; dueInMs: number | null };

/**
 * Does one pass over one chunk: claims it, sends its due ids and returns it. Whatever happens, each id that was sent has its result in the ledger, or
 * a mark there says that it may have been sent. Repeating it is harmless: settled ids are skipped, and a chunk that isn't open is left as it is.
 * Throws an ExpungeError for damaged data in Redis. Throws errors of Redis if it cannot be reached for the claim, or until the shutdown deadline for
 * the results.
 */
export async function deleteChunk(job: ChunkTask, deps: DeleteDeps): Promise<ChunkResult> {
  const claim = await deps.ledger.claim(job.run, job.chunk);
  if (typeof claim === 'string') return { state: claim, dueInMs: null };
  deps.addJobs(job.run, claim.enqueued);
  if (claim.isTakeover) deps.onTakeover(describeTakeover(job, claim));
  if (claim.doubt !== '') deps.log.warn({ run: job.run, reason: claim.doubt }, inDoubtMessage);
  const { ledgerChunk, ids } = claim;
  const definition = definitionOf(ids.resource);
  const withBody = definition.success.filter((status) => status !== successStatus);
  // Without an answer of Redis this process learns a form of its own, and a later chunk asks again.
  await job.firstAnswers.recall(ids.resource, withBody).catch(() => {});
  const verdicts = makeVerdictTable(claim.onStatus, definition);
  const toPath = pathMaker(ids.resource);
  const pathAt = (index: number) => deps.basePath + toPath(ids.idAt(index));
  const pass = new ChunkPass(ledgerChunk.cells, pathAt, dueIndexes(claim, deps), {
    ...passDeps(job, claim, verdicts, deps.meters[ids.resource]!, deps),
    form: definition,
    isNeverRepeated: isNeverRepeated(definition),
  });
  const { limits } = deps.sender;
  limits.enter();
  await pass.run().finally(() => limits.leave());
  await notePutBack(job, claim, pass, deps);
  return returnPassed(job, claim, pass, deps);
}

/** A chunk whose former holder has never returned it. `inFlight`: the number of its ids that may have been sent without an answer. */
export type Takeover = { run: string; chunk: number; ids: number; inFlight: number };

function describeTakeover({ run, chunk }: ChunkTask, { ledgerChunk: { cells } }: Claim): Takeover {
  const open = cells.filter((cell) => !isSettled(cell));
  return { run, chunk, ids: open.length, inFlight: open.filter(isMarked).length };
}

const inDoubtMessage = 'from here on ids that are found gone are gone_unconfirmed, not absent';

/**
 * The indexes of the ids that are due. A chunk is enqueued because ids are due. If none is due, a Redis with another clock took over; then the ids
 * with the shortest wait are due.
 */
function dueIndexes({ ledgerChunk: { cells }, passedMs, sendable }: Claim, { retryDelaysMs }: DeleteDeps): number[] {
  const waitsMs = cells.map((cell, index) =>
    isSettled(cell) || index >= sendable ? Number.POSITIVE_INFINITY : retryDelayMs(countAttempts(cell), retryDelaysMs),
  );
  const shortest = waitsMs.reduce((least, wait) => Math.min(least, wait), Number.MAX_VALUE);
  const longest = Math.max(shortest, passedMs);
  return [...waitsMs.keys()].filter((index) => waitsMs[index]! <= longest);
}

function passDeps(
  { run, chunk, gate, requestQueue, meter, refusals: refusalsOf, firstAnswers, signal: stop }: ChunkTask,
  claim: Claim,
  verdicts: VerdictTable,
  requests: RequestMeter,
  deps: DeleteDeps,
) {
  const {
    ledger,
    log,
    sender: { connections, limits },
  } = deps;
  const refusals = refusalsOf(claim.ids.resource);
  let known: Promise<ReadonlyMap<number, PutBack>> | null = null;
  /** What earlier passes put back; read once, if at all. */
  const earlier = () => {
    known ??= isFirstPass(claim) ? Promise.resolve(new Map()) : readPutBack(ledger.redis, run, chunk);
    return known.catch(() => new Map<number, PutBack>());
  };
  const full = new Set<string>(); // codes whose excerpts have reached the limit: many ids may be absent
  return {
    ...deps,
    verdicts,
    limits,
    refusals,
    fits: (answer: Answer & { kind: 'status' }) => firstAnswers.fits(claim.ids.resource, answer),
    silentMs: () => firstAnswers.silentMs(deps.clock()),
    idAt: (index: number) => claim.ids.idAt(index),
    handle: requestQueue.handleFor(connections),
    batchSize: Math.min(maxBatchSize, Math.max(16, 8 * connections.size)),
    isOpenAt: (nowMs: number) => gate.isOpenAt(nowMs) && requestQueue.isOpen,
    closed: AbortSignal.any([gate.closed, stop]),
    shouldYield: () => requestQueue.perSecond !== null && deps.isAnyRunStarved(),
    halt: (code: HaltCode, reason: string) => deps.halt(run, code, reason),
    update: async (results: CellResult[], wanted: number[], isLast: boolean) => {
      let isFirstTry = true;
      const grant = await persist(async (n) => {
        isFirstTry = n === 1;
        const epoch = (await ledger.stillHolds(run, claim)) ? claim.epoch : noEpoch;
        // A repeated update asks for no marks: by then this process may have lost the chunk.
        const known = n === 1 && epoch !== noEpoch ? claim.known : undefined;
        return ledger.update({ run, chunk, epoch, results, wanted: n === 1 ? wanted : [], known, isLast });
      }, deps);
      const { settledBefore } = grant; // by another process, unless a lost answer of Redis is the reason
      const first = settledBefore && isFirstTry ? results.filter((_, at) => !settledBefore.has(at)) : results;
      requests.recordResults(first);
      meter.recordResults(first);
      // The first chunk to find the run halted also stops this process's other chunks.
      if (grant.state === 'halted' && !gate.closed.aborted) deps.onHalted(run);
      if (grant.state !== 'running' && grant.state !== 'stale') gate.close();
      return grant;
    },
    measure: (answer: Answer, ms: number, isConfirmed: boolean) => {
      const bucket = latencyBucket(ms);
      meter.recordAnswer(answer, ms, bucket, isConfirmed);
      requests.recordAnswer(answer, ms, bucket);
      if (isConfirmed) refusals.accept(ms);
      if (!firstAnswers.hasAnswer) firstAnswers.note(answer, deps.clock());
    },
    noteRefusal: async (index: number, authorization: string) => {
      const id = `${run} ${chunk}.${index}`;
      const { refusedIds, token } = deps;
      if (!refusedIds.knows(id) && (await earlier()).get(index)?.why === 'refused') refusedIds.learn(id);
      return refusedIds.note(id, authorization, token.workedAtMs(authorization));
    },
    noteBody: () => deps.noteBody(run),
    retried: (reason: RetryReason) => requests.recordRetry(reason),
    note: (index: number, cell: Cell, answer: Answer) => {
      const { code } = readCell(cell);
      if (full.has(code)) return;
      noteDetail(ledger.redis, run, { chunk, index, cell, excerpt: toExcerpt(answer) }).then(
        (hasRoom) => hasRoom || full.add(code),
        (error) => log.debug({ run, chunk, err: error }, 'an excerpt of an answer was not stored'),
      );
    },
  };
}

/** Keeps the answers that were put back, for the ids that stay open. The ledger does not depend on it, so errors are only logged. */
async function notePutBack(
  { run, chunk }: ChunkTask,
  claim: Claim,
  { cells, putBack }: ChunkPass,
  { ledger, log }: DeleteDeps,
): Promise<void> {
  const isOpen = (index: number) => !isSettled(cells[index]!);
  const open = [...putBack].filter(([index]) => isOpen(index));
  const found = new Map(
    open.map(([index, { answer, why }]) => [
      index,
      { why, answered: describeAnswer(answer), excerpt: toExcerpt(answer) },
    ]),
  );
  try {
    await storePutBack(ledger.redis, run, chunk, { found, isOpen, isFirst: isFirstPass(claim) });
  } catch (error) {
    log.debug({ run, chunk, err: error }, 'answers that were put back were not stored');
  }
}

function isFirstPass({ ledgerChunk }: Claim): boolean {
  return ledgerChunk.passEndedAt === 0;
}

function describeAnswer(answer: Answer): string {
  return answer.kind === 'status' ? `answered ${answer.status}` : 'no answer';
}

async function returnPassed(
  { run, chunk, requestQueue }: ChunkTask,
  claim: Claim,
  { cells, waitsUntil, isReturned }: ChunkPass,
  deps: DeleteDeps,
): Promise<ChunkResult> {
  const left = [...cells.keys()].filter((index) => !isSettled(cells[index]!) && index < claim.sendable);
  const waits = left.map((index) => {
    const delayMs = retryDelayMs(countAttempts(cells[index]!), deps.retryDelaysMs);
    return Math.max(delayMs, (waitsUntil.get(index) ?? 0) - deps.clock());
  });
  const isRetry = left.every((index) => countAttempts(cells[index]!) > 0 || waitsUntil.has(index));
  // An operator may lift a throttle or change the run's rate, and the chunk must then be due. So a longer wait is cut to 5 s.
  const throttledMs = Math.min(deps.sender.limits.throttledMs, maxWaitMs);
  const permitMs = requestQueue.waitMs > maxWaitMs ? maxWaitMs : 0;
  let dueInMs = waits.length === 0 ? null : Math.max(throttledMs, permitMs, Math.min(...waits));
  const returnChunk = () =>
    persist(async () => {
      // Redis may have lost acknowledged writes, so the chunk is due at once for another pass.
      if (!(await deps.ledger.stillHolds(run, claim))) dueInMs = 0;
      const sendable = claim.sendable < cells.length ? claim.sendable : undefined;
      const resetsMarks = cells.some(hasManyMarks);
      return deps.ledger.returnChunk({ run, chunk, epoch: claim.epoch, dueInMs, resetsMarks, sendable, isRetry });
    }, deps);
  const state = isReturned ? 'running' : await returnChunk();
  if (state !== 'running') return { state, dueInMs: null };
  // Its claim enqueued nothing, so the next rung of a canary may have waited for this chunk.
  if (dueInMs === null && claim.enqueued.length === 0) return { state, dueInMs: 0 };
  return { state, dueInMs: dueInMs !== null && dueInMs <= permitMs ? dueInMs : null };
}

/** Retries a write until Redis accepts it: without its result, a deleted id could only be reported as gone. Throws after the deadline. */
async function persist<T>(
  write: (n: number) => Promise<T>,
  { writes, sleep, shutdownDeadline, log }: DeleteDeps,
): Promise<T> {
  for (let n = 1; ; n++) {
    try {
      return await write(n);
    } catch (error) {
      const isRejected = writes.failed(error);
      if (shutdownDeadline.aborted) throw error;
      if (n === 1 && !isRejected)
        log.warn({ reason: describeRedisError(error) }, 'Redis does not accept results, retrying');
      await sleep(redisRetryMs, shutdownDeadline);
    }
  }
}
