import { existsSync } from 'node:fs';
import { utcTime } from '../format.ts';
import { readKeptUntil } from '../ledger/file-retention.ts';
import type { ListedRun } from '../ledger/list-runs.ts';
import { awaitsResults, endNameOf } from '../ledger/results.ts';
import type { Run } from '../ledger/run.ts';
import { plainLine } from '../terminal/style.ts';

/** Says where the report of a run is and until when it is kept, as far as this machine can see its files. */
export async function describeReportLocation({ reportIn }: Run): Promise<string> {
  if (reportIn === '') return 'no report was written';
  if (!existsSync(reportIn))
    return `its report was written to ${plainLine(reportIn)}, which is not visible from this machine`;
  const until = await readKeptUntil(reportIn);
  return `its report ${until === null ? 'stays' : `is kept until ${utcTime(until, 'day')}`} in ${plainLine(reportIn)}`;
}

/** Where the results of a run are that workers with --results deliver, or why they are not there; '' for a run without. Pure. */
export function describeResults(run: ListedRun): string {
  if (!run.resultsWanted) return '';
  const problem = resultsProblem(run);
  if (problem !== null) return `not delivered yet: ${plainLine(problem)}`;
  const isFolder = !/^https?:/.test(run.resultsIn);
  return plainLine(isFolder ? `${run.resultsIn} on ${run.resultsBy}` : run.resultsIn);
}

/** The same for `--json`: where they are, null = nowhere yet; and why. Both are null for a run without. Pure. */
export function resultsFacts(run: ListedRun): { results: string | null; results_problem: string | null } {
  const problem = run.resultsWanted ? resultsProblem(run) : null;
  return { results: run.resultsWanted && problem === null ? run.resultsIn : null, results_problem: problem };
}

function resultsProblem(run: ListedRun): string | null {
  if (endNameOf(run) === '') return 'the run has not ended';
  if (!awaitsResults(run)) return null;
  return run.resultsProblem || 'no worker with --results has come to it';
}
