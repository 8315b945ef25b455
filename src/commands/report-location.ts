import { existsSync } from 'node:fs';
import { readKeptUntil } from '../ledger/file-retention.ts';
import type { Run } from '../ledger/run.ts';
import { plainLine } from '../terminal/style.ts';

/** Where the report of a run is, and until when, as far as that can be seen from here. */
export async function describeReportLocation({ reportIn }: Run): Promise<string> {
  if (reportIn === '') return 'no report was written';
  if (!existsSync(reportIn))
    return `its report was written to ${plainLine(reportIn)}, which is not visible from this machine`;
  const until = await readKeptUntil(reportIn);
  return `its report ${until === null ? 'stays' : `is kept until ${day(until)}`} in ${plainLine(reportIn)}`;
}

export function day(at: number): string {
  return new Date(at).toISOString().slice(0, 10);
}
