import type { OutcomeRow } from './outcome-row.ts';
import { type ReportStyle, reportHeader, reportText } from './report-line.ts';

/** Takes text, when it has room for it. Says false once nobody reads it any more. */
export type Sink = (text: string) => Promise<boolean>;

/** `only` leaves out rows with other outcomes. */
export type ReportOptions = ReportStyle & { only?: readonly OutcomeRow['outcome'][] };

/** Writes the rows as they come and returns how many. Ends early, without an error, when nobody reads them any more. */
export async function writeReport(
  rows: AsyncIterable<OutcomeRow[]>,
  options: ReportOptions,
  sink: Sink,
): Promise<number> {
  let written = 0;
  let wanted = await sink(reportHeader(options));
  for await (const page of rows) {
    if (!wanted) break;
    const chosen = options.only ? page.filter((row) => options.only!.includes(row.outcome)) : page;
    wanted = await sink(reportText(chosen, options));
    written += chosen.length;
  }
  return written;
}
