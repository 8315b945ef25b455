import { existsSync } from 'node:fs';
import { utcTime } from '../format.ts';
import { readKeptUntil } from '../ledger/file-retention.ts';
import type { ListedRun } from '../ledger/list-runs.ts';
import { resultsFacts } from '../ledger/results.ts';
import type { Run } from '../ledger/run.ts';
import { visibleLine } from '../model/visible.ts';

/** Says where the report of a run is and until when it is kept, as far as this machine can see its files. */
export async function describeReportLocation({ reportIn }: Run): Promise<string> {
  if (reportIn === '') return 'no report was written';
  if (!existsSync(reportIn))
    return `its report was written to ${visibleLine(reportIn)}, which is not visible from this machine`;
  const until = await readKeptUntil(reportIn);
  return `its report ${until === null ? 'stays' : `is kept until ${utcTime(until, 'day')}`} in ${visibleLine(reportIn)}`;
}

/** Where the results of a run are that workers with --results deliver, or why they are not there; '' for a run without. Pure. */
export function describeResults(run: ListedRun): string {
  if (!run.resultsWanted) return '';
  const { results, results_problem: problem } = resultsFacts(run);
  if (problem !== null) return `not delivered yet: ${visibleLine(problem)}`;
  const isFolder = !/^https?:/.test(run.resultsIn);
  return visibleLine(isFolder ? `${results} on ${run.resultsBy}` : run.resultsIn);
}
