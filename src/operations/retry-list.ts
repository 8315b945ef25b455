import { ExpungeError } from '../errors.ts';
import { plural } from '../format.ts';
import { toInputOptions } from '../input/input-options.ts';
import { readProtected, toProtectFile } from '../input/read-protected.ts';
import { type Spool, spoolRows } from '../input/spool.ts';
import { type List, withSpoolFolder } from '../input/with-list.ts';
import { describeLeftOut, readRetried } from '../ledger/retries.ts';
import type { Run } from '../ledger/run.ts';
import { finalizeTally } from '../ledger/tally.ts';
import { type OutcomeCounts, perOutcome, sumOutcomes } from '../model/outcome.ts';
import type { Row } from '../model/row.ts';
import { type Selection, worthRetry } from '../model/selection.ts';
import { type Target, targetFlags } from '../model/target.ts';
import type { Advice } from '../model/to-type.ts';
import type { RedisClient } from '../redis/client.ts';
import type { ListAction } from './list-action.ts';
import { checkList } from './plan-list.ts';
import { type Retries, requireEndedForRetry } from './retried-run.ts';
import { findRun, type Session } from './session.ts';
import { startList } from './start-list.ts';
import { targetOfSettings } from './target-of-settings.ts';

/** Which ids of a run are sent again. */
export type RetryAction = {
  /** A run that has ended. */
  run: Run;
  only: Selection;
  /** How many ids a person was shown; null if the person is asked later. */
  expected: number | null;
  /** Called with the number of rows of the run that were read so far. */
  onRow(rows: number): void;
};

/** Makes a run of ids of an ended run, which workers delete; null if there are no such ids. Throws USAGE and GUARD, and has made no run then. */
export async function retryRun(
  session: Session,
  action: ListAction,
  { run: text, only = worthRetry, expected }: { run: string; only?: Selection | undefined; expected: number },
): Promise<{ run: Run; warnings: Advice[] } | null> {
  const run = await findRun(session, text);
  requireEndedForRetry(run);
  const target = targetOfRun(action, run);
  return withRetried(session, action, { run, only, expected, onRow: () => {} }, async (list, retries) =>
    list.spool.rows === 0 ? null : startList(session, action, { target, list, retries, applied: null }),
  );
}

/**
 * Reads the ids that are sent again as if they were in the files of their run, calls `body`, and removes the list. Throws GUARD if other ids are
 * chosen than were shown, and USAGE for anything that would refuse a list of them.
 */
export async function withRetried<T>(
  { redis }: Session,
  action: ListAction,
  { run: found, only, expected, onRow }: RetryAction,
  body: (list: List, retries: Retries) => Promise<T>,
): Promise<T> {
  const run = await finalizeTally(redis, found);
  return withSpoolFolder(action.config.stateDir, async (folder) => {
    const { spool, chosen, mayBeGone } = await spoolRetried(redis, action, { run, only, folder, onRow });
    if (spool.rows > 0) {
      checkList(action, spool);
      requireExpectedCount(run, chosen, expected);
    }
    return body({ spool, rejectsFile: null, openEnd: null }, { run, chosen, mayBeGone });
  });
}

/** Throws GUARD unless as many ids are chosen as were shown with the run; ids that are protected by now also count. */
function requireExpectedCount(run: Run, chosen: OutcomeCounts, expected: number | null): void {
  const ids = sumOutcomes(chosen);
  if (expected === null || ids === expected) return;
  const leftOut = describeLeftOut(run);
  const message = `run ${run.id} now has ${plural(ids, 'matching ids')} to retry, not ${expected}`;
  throw new ExpungeError('GUARD', leftOut === null ? message : `${message}: ${leftOut}`, {
    next:
      leftOut === null
        ? 'look at the run again, and type how many it has'
        : 'choose the others: --only failed,not_attempted',
  });
}

/** The target of the settings, which must be the target of the run: the token is never sent to an address that only Redis names. */
export function targetOfRun(
  action: Pick<ListAction, 'config' | 'env'>,
  { id, baseUrl, account, fp }: Pick<Run, 'id' | 'baseUrl' | 'account' | 'fp'>,
): Target {
  const target = targetOfSettings(action, `run ${id}`, { baseUrl, account });
  if (target.fp === fp) return target;
  const of = (url: string, name: string) => `${url}${name && ` as account ${name}`}`;
  const [run, named] = [of(baseUrl, account), of(target.baseUrl, target.account)];
  throw new ExpungeError('USAGE', `run ${id} deleted on ${run}, but the settings name ${named}; nothing was sent`, {
    next: `add ${targetFlags({ baseUrl, account })}`,
  });
}

type Reading = Pick<RetryAction, 'run' | 'only' | 'onRow'> & { folder: string };

/** Writes the chosen rows to a spool. */
async function spoolRetried(
  redis: RedisClient,
  { config }: ListAction,
  { run, only, folder, onRow }: Reading,
): Promise<{ spool: Spool } & Omit<Retries, 'run'>> {
  const { limit = null } = config;
  const protectFile = toProtectFile(config);
  const chosen = perOutcome(() => 0);
  let [rows, mayBeGone] = [0, 0];
  async function* batches(): AsyncGenerator<Row[]> {
    for await (const page of readRetried(redis, run, only)) {
      for (const row of page.slice(0, Math.max(0, (limit ?? Number.POSITIVE_INFINITY) - rows))) {
        chosen[row.outcome]++;
        mayBeGone += Number(row.mayBeGone);
      }
      rows += page.length;
      onRow(rows);
      yield page;
    }
  }
  const protectedIds = protectFile && readProtected(protectFile, toInputOptions(config));
  const spool = await spoolRows(batches(), folder, { files: run.files, protectedIds, limit });
  return { spool, chosen, mayBeGone };
}
