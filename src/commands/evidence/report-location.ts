import { existsSync } from 'node:fs';
import { utcTime } from '../../format.ts';
import type { ListedRun } from '../../ledger/list-runs.ts';
import { resultsFacts } from '../../ledger/results.ts';
import type { Run } from '../../ledger/run.ts';
import { visibleLine } from '../../model/visible.ts';
import { readKeptUntil } from '../../report/file-retention.ts';

/** Describes where the report of a run is and how long it is kept, as far as this machine can see its files. */
export async function describeReportLocation({ reportIn }: Run): Promise<string> {
  if (reportIn === '') return 'no report was written';
  if (!existsSync(reportIn))
    return `its report was written to ${visibleLine(reportIn)}, which is not visible from this machine`;
  const until = await readKeptUntil(reportIn);
  return `its report ${until === null ? 'stays' : `is kept until ${utcTime(until, 'day')}`} in ${visibleLine(reportIn)}`;
}

/** Describes where workers with --results have put the results of a run, or why they are missing; '' for a run without results. Pure. */
export function describeResults(run: ListedRun): string {
  if (!run.resultsWanted) return '';
  const { results, results_problem: problem } = resultsFacts(run);
  if (problem !== null) return `not delivered yet: ${visibleLine(problem)}`;
  const isFolder = !/^https?:/.test(run.resultsIn);
  return visibleLine(isFolder ? `${results} on ${run.resultsBy}` : run.resultsIn);
}
