import { ExpungeError } from '../errors.ts';
import { historyFacts, readHistory } from '../history/history.ts';
import { noteRunAction } from '../ledger/audit.ts';
import { markDelivered } from '../ledger/end-run.ts';
import { chooseRuns, type ListedRun } from '../ledger/list-runs.ts';
import { readOutcomes } from '../ledger/outcome-rows.ts';
import { isFinalized, readRun, schemaVersion } from '../ledger/run.ts';
import { readStandings } from '../ledger/run-standings.ts';
import { standingFacts } from '../ledger/standing.ts';
import { listedFacts } from '../ledger/summary.ts';
import { finalizeTally, tallyIfFinalized } from '../ledger/tally.ts';
import { readProof } from '../ledger/verification.ts';
import type { RedisClient } from '../redis/client.ts';
import { htmlReport } from '../report/html-report.ts';
import { writeReport } from '../report/report.ts';
import type { RecordOperations } from './operations.ts';
import { readRunRecord, readWholeContext } from './run-record.ts';
import { searchRuns } from './search-runs.ts';
import { type EarlySession, findRun } from './session.ts';
import { verify } from './verify-run.ts';

/** Queries about runs in the Redis of this session. */
export function localRecords(session: EarlySession): RecordOperations {
  const { redis, address } = session;
  return {
    place: address.label,
    pollMs: 250,
    away: undefined,
    find: (text) => findRun(session, text),
    async findTallied(text) {
      const run = await tallyIfFinalized(redis, await findRun(session, text));
      return { run, proof: await readProof(redis, run) };
    },
    async list(choice, toType) {
      const chosen = await chooseRuns(redis, choice);
      await expireEnded(redis, chosen.runs);
      const standings = await readStandings(redis, chosen.runs);
      const standingOf = (run: ListedRun) => standingFacts(standings(run), toType);
      const factsOf = (run: ListedRun) => ({ ...listedFacts(run, Date.now()), standing: standingOf(run) });
      return { ...chosen, factsOf, standingOf };
    },
    record: (run) => readRunRecord(session, run),
    async look(last) {
      const run = await readRun(redis, last.id).catch(() => undefined);
      return { run, context: await readWholeContext(session, run ?? last).catch(() => undefined) };
    },
    async history(run) {
      return historyFacts(await readHistory(redis, run));
    },
    search: (action) => searchRuns({ redis, ...action }),
    rows: (run) => readOutcomes(redis, run),
    verify: (run) => verify(redis, run),
    async write(run, { format, ...style }, sink) {
      if (format !== 'html') return writeReport(readOutcomes(redis, run), { format, ...style }, sink);
      await sink(await htmlReport(redis, run));
      return run.rows;
    },
    noteReport: (run, path) => markDelivered(redis, run, path),
    noteManifest: (run, by, sha256) =>
      noteRunAction(redis, run.id, {
        at: Date.now(),
        action: 'manifest',
        ...by,
        by: 'operator',
        report_sha256: sha256,
      }),
  };
}

/** Tallies ended runs whose keys do not expire: the process that ended them may have been killed before it set the expiry. */
async function expireEnded(redis: RedisClient, runs: readonly ListedRun[]): Promise<void> {
  for (const { id, state, isExpiring } of runs) {
    const run = isFinalized(state) && !isExpiring ? await readRun(redis, id) : null;
    if (run?.schema === schemaVersion) await finalizeTally(redis, run).catch(unlessRemoved);
  }
}

/** Another command may remove a run while it is listed. */
function unlessRemoved(error: unknown): void {
  if (!(error instanceof ExpungeError)) throw error;
}
