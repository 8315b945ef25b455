import type { Ledger } from '../ledger/ledger.ts';
import type { Run } from '../ledger/run.ts';
import { startRun, takeUpLost } from '../ledger/start-run.ts';
import { keys } from '../redis/keys.ts';
import type { ChunkQueue } from './queue.ts';

export type Feeder = {
  /** Brings chunks that were fed into the queue. If it fails, `tend` makes up for it. */
  add(run: string, chunks: number[]): Promise<void>;
  /** Feeds due and new chunks of a run. Whoever starts a run or hands back a chunk that is due again calls it; a claim feeds by itself. */
  feed(run: string): Promise<void>;
  /**
   * Feeds, then puts back the jobs of open chunks that the queue has lost, and takes up chunks that Redis has lost sight of. Running it
   * twice adds nothing.
   */
  tend(run: string): Promise<void>;
};

export function createFeeder(ledger: Ledger, queue: ChunkQueue): Feeder {
  const add = (run: string, chunks: number[]) => queue.add(chunks.map((chunk) => ({ run, chunk })));
  const feed = async (run: string) => add(run, await ledger.feed(run));
  const tend = async (run: string) => {
    await feed(run);
    const open = await ledger.redis.hkeys(keys.open(run));
    if (open.length === 0 && (await takeUpLost(ledger, run))) return feed(run);
    await queue.restore(open.map((chunk) => ({ run, chunk: Number(chunk) })));
  };
  return { add, feed, tend };
}

/** Leaves a planned run to the workers of its target, and starts it. Repeating it is harmless. */
export async function leaveToWorkers(
  ledger: Ledger,
  feeder: Feeder,
  run: Run,
  by: { who: string; reason: string },
): Promise<void> {
  await ledger.redis.sadd(keys.targetRuns(run.fp), run.id);
  await startRun(ledger, run, by);
  await feeder.tend(run.id);
}
