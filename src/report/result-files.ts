import { isoTime } from '../format.ts';
import { type OutcomeRow, readOutcomes } from '../ledger/outcome-rows.ts';
import type { Run } from '../ledger/run.ts';
import { toExitCode, toSummary } from '../ledger/summary.ts';
import { checkConservation, tallyLedger } from '../ledger/tally.ts';
import { labelsFrom } from '../model/labels.ts';
import { isWorthAnotherRun, sumOutcomes } from '../model/outcome.ts';
import type { RedisClient } from '../redis/client.ts';
import { htmlReport } from './html-report.ts';
import { type ReportStyle, reportHeader, reportText } from './report.ts';

/** The text of a file of a run, piece by piece. */
type TextOf = (redis: RedisClient, run: Run) => AsyncIterable<string>;

/**
 * The results of a run that has ended, in the order in which they are written. The summary comes last: if it exists, the others are complete. The
 * results of a finalized run are the same each time they are written. Exceptions: the last measures on the page, and answers with a body that a
 * process reports late.
 */
export const resultFiles: Readonly<Record<string, TextOf>> = {
  'outcomes.csv': (redis, run) => rowsText(readOutcomes(redis, run)),
  'failures.csv': (redis, run) => rowsText(hasFailures(run) ? failuresIn(readOutcomes(redis, run)) : []),
  'report.html': async function* (redis, run) {
    yield await htmlReport(redis, run);
  },
  'summary.json': summaryText,
};

const style: ReportStyle = { format: 'csv', spreadsheetSafe: false };

async function* rowsText(pages: AsyncIterable<OutcomeRow[]> | Iterable<OutcomeRow[]>): AsyncGenerator<string> {
  yield reportHeader(style);
  for await (const page of pages) if (page.length > 0) yield reportText(page, style);
}

/** Whether a run has failures. Most runs have none, so their ledger need not be read. */
function hasFailures({ counts }: Run): boolean {
  return sumOutcomes(counts, isWorthAnotherRun) > 0;
}

async function* failuresIn(pages: AsyncIterable<OutcomeRow[]>): AsyncGenerator<OutcomeRow[]> {
  for await (const page of pages) yield page.filter(({ outcome }) => isWorthAnotherRun(outcome));
}

/** The summary as `--json` prints it, with the origin of the run, when it ended, and whether its ledger adds up. */
async function* summaryText(redis: RedisClient, run: Run): AsyncGenerator<string> {
  const problem = checkConservation(run, await tallyLedger(redis, run));
  const { createdAt, startedAt, endedAt, changedAt, baseUrl, account, files, sha256, note, labels, createdBy } = run;
  const { results: _, results_problem: __, ...summary } = toSummary(run, toExitCode(run), endedAt || changedAt);
  const facts = {
    ...summary,
    adds_up: problem === null,
    problem,
    base_url: baseUrl,
    account,
    list: files,
    sha256,
    note,
    labels: labelsFrom(labels),
    submitted_by: createdBy,
    submitted_at: isoTime(createdAt),
    started_at: startedAt > 0 ? isoTime(startedAt) : null,
    ended_at: endedAt > 0 ? isoTime(endedAt) : null, // null: it is halted and can be resumed
  };
  yield `${JSON.stringify(facts, null, 2)}\n`;
}
