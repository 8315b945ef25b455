import type { Ledger } from '../ledger/ledger.ts';
import { isDeliveryEnabled, requestDelivery } from '../ledger/results.ts';
import type { Run } from '../ledger/run.ts';
import { recoverOrphans, startRun } from '../ledger/start-run.ts';
import { keys } from '../redis/keys.ts';
import type { ChunkQueue } from './queue.ts';

/** Keeps the queue supplied with the due chunks of runs. All methods throw if Redis does not answer, and can be repeated. */
export type Enqueuer = {
  /** Adds the jobs of chunks that became open to the queue. If that fails, `recover` does it later. */
  addJobs(run: string, chunks: number[]): Promise<void>;
  /** Enqueues due and new chunks of a run. Call it after the start of a run and when a chunk is due again; a claim enqueues by itself. */
  enqueue(run: string): Promise<void>;
  /** Enqueues, then recovers orphaned chunks, or adds the jobs of open chunks that the queue has lost. Repeating it adds nothing. */
  recover(run: string): Promise<void>;
};

/** Creates the enqueuer for the runs of one target, from their ledger into its queue. */
export function createEnqueuer(ledger: Ledger, queue: ChunkQueue): Enqueuer {
  const addJobs = (run: string, chunks: number[]) => queue.add(chunks.map((chunk) => ({ run, chunk })));
  const enqueue = async (run: string) => addJobs(run, await ledger.enqueue(run));
  const recover = async (run: string) => {
    await enqueue(run);
    const open = await ledger.redis.hkeys(keys.open(run));
    if (open.length === 0 && (await recoverOrphans(ledger, run))) return enqueue(run);
    await queue.restore(open.map((chunk) => ({ run, chunk: Number(chunk) })));
  };
  return { addJobs, enqueue, recover };
}

/** Registers a run with the workers of its target, before it is started. Repeating it is harmless. */
export async function registerWithWorkers({ redis }: Ledger, { id, fp }: Pick<Run, 'id' | 'fp'>): Promise<void> {
  await redis.sadd(keys.targetRuns(fp), id);
  if (await isDeliveryEnabled(redis, fp)) await requestDelivery(redis, id);
}

/**
 * Starts a planned run and registers it with the workers of its target. Repeating it is harmless. Returns false if `startRun` does. Throws if Redis
 * does not answer.
 */
export async function startDetachedRun(
  ledger: Ledger,
  enqueuer: Enqueuer,
  run: Run,
  by: { who: string; reason: string },
): Promise<boolean> {
  await registerWithWorkers(ledger, run);
  const isStarted = await startRun(ledger, run, by);
  await enqueuer.recover(run.id);
  return isStarted;
}
