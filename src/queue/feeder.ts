import type { Ledger } from '../ledger/ledger.ts';
import { keys } from '../redis/keys.ts';
import type { ChunkQueue } from './queue.ts';

/** Chunks of a run that may wait unclaimed: enough that no worker runs dry, so few that runs share the workers. */
const unclaimedShare = 4;

export type Feeder = {
  /** Brings due and new chunks of a run into the queue. Whoever starts a run, claims or hands back a chunk calls it. */
  feed(run: string): Promise<void>;
  /** Feeds, then puts back the jobs of open chunks that the queue has lost. Running it twice adds nothing. */
  tend(run: string): Promise<void>;
};

/** `now`: milliseconds since 1970. */
export function createFeeder(ledger: Ledger, queue: ChunkQueue, now: () => number): Feeder {
  const feed = async (run: string) => {
    const chunks = await ledger.feed(run, now(), unclaimedShare);
    await queue.add(chunks.map((chunk) => ({ run, chunk })));
  };
  const tend = async (run: string) => {
    await feed(run);
    const open = await ledger.redis.hkeys(keys.open(run));
    await queue.restore(open.map((chunk) => ({ run, chunk: Number(chunk) })));
  };
  return { feed, tend };
}
