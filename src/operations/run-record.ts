import { readAudit } from '../ledger/audit.ts';
import { haltExamples } from '../ledger/halt-examples.ts';
import { readMeasures } from '../ledger/measures.ts';
import type { Run } from '../ledger/run.ts';
import { tallyIfFinalized } from '../ledger/tally.ts';
import { readProof } from '../ledger/verification.ts';
import { isAbandoned } from './liveness.ts';
import type { Session } from './session.ts';
import { readRunContext } from './take-snapshot.ts';

/**
 * A run as Redis holds it, what explains its pace, and its audit trail: everything that `status` and the actions show. It survives JSON, so a command
 * shows the same when a server sends it.
 */
export type RunRecord = Awaited<ReturnType<typeof readRunRecord>>;

/** Reads the record; an ended run is tallied. */
export async function readRunRecord(session: Session, found: Run) {
  const { redis } = session;
  const run = await tallyIfFinalized(redis, found);
  const [context, examples, measures, audit, proof] = await Promise.all([
    readWholeContext(session, run),
    haltExamples(redis, run),
    readMeasures(redis, run.id),
    readAudit(redis, run),
    readProof(redis, run),
  ]);
  return { run, context, examples, measures, audit, proof };
}

/** What explains the pace of a run that other processes delete, and whether its command has ended. */
export async function readWholeContext(session: Session, run: Run) {
  const [context, abandoned] = await Promise.all([readRunContext(session.redis, run), isAbandoned(session, run)]);
  return { ...context, isAbandoned: abandoned };
}
