import { setTimeout as sleep } from 'node:timers/promises';
import { messageOf } from '../errors.ts';
import { idPath } from '../guard/check-id.ts';
import { attemptsOf, type Cell, isSettled } from '../ledger/cell.ts';
import type { LedgerChunk } from '../ledger/cells.ts';
import { noteDetail } from '../ledger/chunk-store.ts';
import type { Ledger, SeenState } from '../ledger/ledger.ts';
import type { HaltCode } from '../ledger/run.ts';
import type { Log } from '../logger.ts';
import { parkedForMs } from './backoff.ts';
import type { Brake } from './brake.ts';
import { ChunkPass } from './chunk-pass.ts';
import { excerptOf } from './excerpt.ts';
import type { Gate } from './gate.ts';
import type { Lanes } from './lanes.ts';
import type { Token } from './token.ts';

/** What a process brings to every chunk it works on. */
export type DeleteWork = {
  ledger: Ledger;
  lanes: Lanes;
  brake: Brake;
  token: Token;
  basePath: string; // of the target's URL, without a slash at its end
  retryDelaysMs: readonly number[];
  patienceMs: number;
  clock: () => number; // monotonic ms
  now: () => number; // ms since 1970
  random: () => number;
  /** Aborted when the process is about to end and waits for nothing any more. */
  giveUp: AbortSignal;
  halt(run: string, code: HaltCode, reason: string): void;
  /** These chunks became open: their jobs belong into the queue. */
  fed(run: string, chunks: number[]): void;
  log: Log;
};

/** A chunk of a run, and whether its requests may leave. `stop`: this process no longer holds the chunk's job. */
export type ChunkJob = { run: string; chunk: number; gate: Gate; stop: AbortSignal };

const redisRetryMs = 200;
const widestWindow = 256;

/**
 * One pass over one chunk. Whatever happens, each id that was sent has its answer in the ledger, or its mark there says that it
 * may have been. Repeating it is harmless: settled ids are skipped, a chunk that isn't open is left alone.
 */
export async function deleteChunk(job: ChunkJob, work: DeleteWork): Promise<SeenState> {
  const claim = await work.ledger.claim(job.run, job.chunk, work.now());
  if (typeof claim === 'string') return claim;
  work.fed(job.run, claim.fed);
  const { epoch, ledgerChunk, ids } = claim;
  const pathAt = (index: number) => work.basePath + idPath(ids.resource, ids.idAt(index));
  const pass = new ChunkPass(ledgerChunk.cells, pathAt, dueIndexes(ledgerChunk, work), passWork(job, epoch, work));
  await pass.run();
  return handBack(job, epoch, pass.cells, work);
}

/** Whoever fed the chunk found something due. If by this clock nothing is, clocks differ: then the ids that wait shortest are. */
function dueIndexes({ cells, passEndedAt }: LedgerChunk, { retryDelaysMs, now }: DeleteWork): number[] {
  const waitsMs = cells.map((cell) =>
    isSettled(cell) ? Number.POSITIVE_INFINITY : parkedForMs(attemptsOf(cell), retryDelaysMs),
  );
  const shortest = waitsMs.reduce((least, wait) => Math.min(least, wait), Number.MAX_VALUE);
  const longest = Math.max(shortest, now() - passEndedAt);
  return [...waitsMs.keys()].filter((index) => waitsMs[index]! <= longest);
}

function passWork({ run, chunk, gate, stop }: ChunkJob, epoch: number, work: DeleteWork) {
  const { ledger, lanes, log } = work;
  return {
    ...work,
    window: Math.min(widestWindow, Math.max(16, 4 * lanes.size)),
    isOpen: () => gate.isOpen,
    closed: AbortSignal.any([gate.closed, stop]),
    halt: (code: HaltCode, reason: string) => work.halt(run, code, reason),
    step: (joins: Parameters<Ledger['step']>[3], wanted: number[], repeats: number) =>
      // A repeated step asks for no marks: by then this process may have lost the chunk.
      persist((n) => ledger.step(run, chunk, epoch, joins, n === 1 ? wanted : [], repeats), work),
    note: (index: number, cell: Cell, answer: Parameters<typeof excerptOf>[0]) => {
      noteDetail(ledger.redis, run, { chunk, index, cell, excerpt: excerptOf(answer) }).catch((error) => {
        log.debug({ run, chunk, err: error }, 'an error excerpt was not stored');
      });
    },
  };
}

async function handBack({ run, chunk }: ChunkJob, epoch: number, cells: Cell[], work: DeleteWork) {
  const now = work.now();
  const waits = cells
    .filter((cell) => !isSettled(cell))
    .map((cell) => parkedForMs(attemptsOf(cell), work.retryDelaysMs));
  const dueAt = waits.length === 0 ? null : now + Math.max(work.brake.remainingMs, Math.min(...waits));
  return persist(() => work.ledger.handBack(run, chunk, epoch, now, dueAt), work);
}

/** Results in hand are worth waiting for: without them ids that were deleted could only be called gone. */
async function persist<T>(write: (n: number) => Promise<T>, { giveUp, log }: DeleteWork): Promise<T> {
  for (let n = 1; ; n++) {
    try {
      return await write(n);
    } catch (error) {
      if (giveUp.aborted) throw error;
      if (n === 1) log.warn({ reason: messageOf(error) }, 'Redis does not take results, trying again');
      await sleep(redisRetryMs, undefined, { signal: giveUp }).catch(() => {});
    }
  }
}
