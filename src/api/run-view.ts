import type { Config } from '../config/settings.ts';
import { isoTime } from '../format.ts';
import { historyFacts, readHistory } from '../history/history.ts';
import { auditFacts, readAudit } from '../ledger/audit.ts';
import { describeBodies } from '../ledger/bodies.ts';
import { haltExamples, haltSelection } from '../ledger/halt-examples.ts';
import { isFinalized, type Run, readRun } from '../ledger/run.ts';
import { ruleFacts } from '../ledger/run-rules.ts';
import { tallyIfFinalized } from '../ledger/tally.ts';
import { readProof } from '../ledger/verification.ts';
import { protectedHost } from '../model/target-pattern.ts';
import { toTypeAnywhere } from '../model/to-type.ts';
import { hasForegroundCommand } from '../operations/liveness.ts';
import { refuseOtherVersion, type Session } from '../operations/session.ts';
import { readRunContext, SnapshotTaker, withStanding } from '../operations/take-snapshot.ts';
import { describeActivity } from '../terminal/panel.ts';
import { runSummary } from './overview.ts';
import { Problem } from './problem.ts';
import type { ApiDeps } from './route.ts';

/** The run with this id, tallied if it has ended. Throws not_found. */
export async function findRunById({ redis }: Pick<Session, 'redis'>, id: string): Promise<Run> {
  const run = await readRun(redis, id);
  if (run === null) throw noRun(id);
  refuseOtherVersion(run);
  return tallyIfFinalized(redis, run);
}

/** The problem for a run that does not exist. */
export function noRun(id: string): Problem {
  return new Problem('not_found', `no run is called "${id}"`, 'GET /api/v1/runs lists them');
}

/** Shows one run repeatedly, and measures its speed between two readings. */
export class RunView {
  readonly #session: Session;
  readonly #id: string;
  readonly #protectedTargets: Config['protectedTargets'];
  #taker: SnapshotTaker | null = null;

  constructor({ session, config }: Pick<ApiDeps, 'session' | 'config'>, id: string) {
    this.#session = session;
    this.#id = id;
    this.#protectedTargets = config.protectedTargets;
  }

  async read() {
    const { redis } = this.#session;
    const run = await findRunById(this.#session, this.#id);
    const reads = [
      readRunContext(redis, run),
      run.detached || isFinalized(run.state) ? null : hasForegroundCommand(this.#session, run),
      readAudit(redis, run),
      readProof(redis, run),
      haltExamples(redis, run),
    ] as const;
    const [context, hasCommand, audit, proof, examples] = await Promise.all(reads);
    const abandoned = run.state === 'running' && hasCommand === false;
    this.#taker ??= new SnapshotTaker(run, null, toTypeAnywhere);
    this.#taker.observe(run);
    this.#taker.observeContext({ ...context, isAbandoned: abandoned });
    const snapshot = this.#taker.take();
    const now = Date.now();
    return {
      ...runSummary(withStanding(run, snapshot.standings), now, snapshot),
      sentence: describeActivity(snapshot),
      abandoned,
      has_command: hasCommand,
      by: run.by || null,
      note: run.note,
      command: run.command,
      plan: run.plan || null,
      plan_changed: run.planChanged || null,
      doubt: run.doubt || null,
      started_at: run.startedAt > 0 ? isoTime(run.startedAt) : null,
      starts_in_seconds: run.startsAt > now ? (run.startsAt - now) / 1_000 : null,
      ids: run.ids,
      protected_host: protectedHost(this.#protectedTargets, run.baseUrl),
      settings: ruleFacts(run),
      warnings: [...describeBodies(run.bodies), ...proof],
      examples,
      behind_halt: haltSelection(run) || null,
      audit: audit.map(auditFacts),
    };
  }

  /** The run and its history, for its page. */
  async readWithHistory() {
    const [run, history] = await Promise.all([this.read(), readHistoryFacts(this.#session, this.#id)]);
    return { run, history };
  }
}

/** The points and events of `status --json --history`. */
export async function readHistoryFacts(session: Session, id: string) {
  return historyFacts(await readHistory(session.redis, await findRunById(session, id)));
}
