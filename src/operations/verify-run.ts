import { ExpungeError } from '../errors.ts';
import type { Run } from '../ledger/run.ts';
import { retryFacts } from '../ledger/summary.ts';
import { checkConservation, finalizeTally, tallyLedger } from '../ledger/tally.ts';
import type { OutcomeCounts } from '../model/outcome.ts';
import type { RedisClient } from '../redis/client.ts';

/** Result of a count of every row of a run, as `--json` prints it; `problem`: what does not add up, or null. */
export type Verification = OutcomeCounts & {
  run: string;
  retry_of: string | null;
  retried_by: readonly string[];
  adds_up: boolean;
  problem: string | null;
  rows: number;
  pending: number;
};

/** Counts every row of a run in the ledger. Throws USAGE for a run whose list was not written completely. */
export async function verify(redis: RedisClient, run: Run): Promise<Verification> {
  if (run.state === 'preparing') {
    throw new ExpungeError('USAGE', `run ${run.id} can't be verified: its list was not written completely`, {
      next: `run its command again: ${run.command}`,
    });
  }
  const finalized = await finalizeTally(redis, run);
  const tally = await tallyLedger(redis, finalized);
  const problem = checkConservation(finalized, tally);
  const { counts, pending } = tally;
  const facts = { run: run.id, ...retryFacts(run), adds_up: problem === null, problem, rows: run.rows, pending };
  return { ...facts, ...counts };
}
