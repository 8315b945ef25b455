import { existsSync } from 'node:fs';
import { utcTime } from '../format.ts';
import { readKeptUntil } from '../ledger/file-retention.ts';
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
