import { ExpungeError } from '../errors.ts';
import { isoTime, plural } from '../format.ts';
import { shown } from '../input/input-error.ts';
import { runsOfTarget } from '../ledger/list-runs.ts';
import { type Run, readRun } from '../ledger/run.ts';
import { readProof } from '../ledger/verification.ts';
import { type FoundRow, type FoundRows, findId, type Wanted } from '../lookup/find-id.ts';
import { isNameOf, isResourceName, resources, resourcesText } from '../model/resource.ts';
import { suggest } from '../model/suggest.ts';
import type { Target } from '../model/target.ts';
import { visibleLine } from '../model/visible.ts';
import type { RedisClient } from '../redis/client.ts';
import { whyText } from '../terminal/explain-text.ts';
import { targetName } from '../terminal/stop-text.ts';
import { refuseOtherVersion } from './session.ts';

/** The USAGE error that names what was looked for, and where. */
export function noRunHas({ target, wanted, searched }: Pick<Search, 'target' | 'wanted' | 'searched'>): ExpungeError {
  const what = `${wanted.resource} ${shown(wanted.id)}`;
  const where = `${targetName(target)} (${plural(searched.runs, 'runs')} searched)`;
  const defined = resources.includes(wanted.resource) ? '' : ` (here: ${resourcesText('and')})`;
  return new ExpungeError('USAGE', `no run has ${what} on ${where}`, {
    next: (toType) =>
      `compare id, resource${defined}, --base-url and --account; ${toType('runs')} lists the runs that Redis still has`,
  });
}

/** Whether runs can have ids of this resource: it is defined here, or nothing defined here is meant, so that it may be defined elsewhere. */
export function isSearchable(resource: string): boolean {
  if (resources.includes(resource)) return true;
  const isMisspelt = suggest(resource, resources) !== '' || resources.some((known) => isNameOf(resource, known));
  return isResourceName(resource) && !isMisspelt;
}

/** The rows of an id in a run, and how far a `deleted` of that run can be trusted; see `readProof`. */
export type Appearance = { run: Run; found: FoundRows; proof: string[] };

export type Search = {
  redis: RedisClient;
  target: Target;
  wanted: Wanted;
  searched: { runs: number; rows: number }; // these numbers grow
  onProblem: (words: string) => void; // called for a run that cannot be read; the search continues with the others
  stop?: AbortSignal;
};

/** Yields the runs that have the id, newest first. Once `stop` is aborted it reads no further and throws the reason. */
export async function* searchRuns(search: Search): AsyncGenerator<Appearance> {
  const { redis, target, wanted, searched, onProblem, stop } = search;
  const onRows = (n: number) => {
    stop?.throwIfAborted();
    searched.rows += n;
  };
  for await (const page of runsOfTarget(redis, target)) {
    for (const { id } of page) {
      const run = await readRun(redis, id);
      if (run === null) continue; // it has expired since it was listed
      searched.runs += 1;
      const found = await searchRun(redis, run, wanted, onRows).catch((error) => {
        if (!(error instanceof ExpungeError)) throw error;
        onProblem(`run ${id} is not searched: ${visibleLine(error.message)}`);
        return null;
      });
      if (found !== null && found.rows.length > 0) yield { run, found, proof: await readProof(redis, run) };
    }
  }
}

async function searchRun(redis: RedisClient, run: Run, wanted: Wanted, onRows: (n: number) => void) {
  refuseOtherVersion(run);
  return findId(redis, run, wanted, onRows);
}

/** The rows of a run with the id, for `--json` and the API. */
export function toAppearances(run: Run, { rows }: FoundRows, now: number): Record<string, unknown>[] {
  return rows.map((row) => ({ run: run.id, state: run.state, ...factsOf(row), why: whyText(run, row, now) }));
}

function factsOf({ settledAt, open, ...row }: FoundRow): Record<string, unknown> {
  const waits = open && {
    in_flight: open.isInFlight,
    in_doubt: open.inDoubt,
    next_try_at: open.nextTryAt === null ? null : isoTime(open.nextTryAt),
  };
  return { ...row, settled_at: settledAt, open: waits };
}
