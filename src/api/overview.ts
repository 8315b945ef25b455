import { isoTime } from '../format.ts';
import type { ListedRun } from '../ledger/list-runs.ts';
import { readStandings } from '../ledger/run-standings.ts';
import { type Standing, standingFacts } from '../ledger/standing.ts';
import { listedFacts } from '../ledger/summary.ts';
import { readConnections } from '../limiter/read-target.ts';
import { readProcesses, stopFacts } from '../limiter/stop.ts';
import { openRunIndex } from '../lookup/run-index.ts';
import { type Reach, type Target, targetOf } from '../model/target.ts';
import { toTypeAnywhere } from '../model/to-type.ts';
import { scheduleFacts } from '../operations/schedule-record.ts';
import type { Session } from '../operations/session.ts';
import { readTargetStatus, type TargetStatus, targetStatusFacts } from '../operations/target-status.ts';
import { estimateSecondsLeft } from '../operations/time-left.ts';
import type { Schedule } from '../schedule/schedule.ts';
import { listSchedules } from '../schedule/schedule-store.ts';
import { RateMeter } from '../terminal/panel.ts';
import { whenText } from '../terminal/schedule-text.ts';

const shownHistory = 5;

/** Reads everything within reach that Redis knows at one moment, and measures the speed of runs between two readings. */
export class OverviewReader {
  readonly #session: Session;
  readonly #reach: Reach;
  #meters = new Map<string, RateMeter>();

  constructor(session: Session, reach: Reach) {
    this.#session = session;
    this.#reach = reach;
  }

  async read() {
    const now = Date.now();
    const { active, recent, ended, targets } = await openRunIndex(this.#session.redis).read(this.#reach);
    this.#measure(active, now);
    const standings = await readStandings(this.#session.redis, active);
    const each = await Promise.all(targets.map((target) => this.#readTarget(target, active, now)));
    return {
      at: isoTime(now),
      runs: {
        active: active.map((run) =>
          runSummary(run, now, { standings: standings(run), perSecond: this.#meters.get(run.id)?.perSecond ?? null }),
        ),
        recent: recent.map((run) => runSummary(run, now)),
        ended,
      },
      targets: each.map(({ target }) => target),
      workers: each.flatMap(({ workers }) => workers),
      schedules: each.flatMap(({ schedules }) => schedules),
    };
  }

  async #readTarget(target: Target, active: readonly ListedRun[], now: number) {
    const { redis } = this.#session;
    const [facts, workers, schedules] = await Promise.all([
      targetFacts(this.#session, target, active),
      readWorkers(this.#session, target),
      listSchedules(redis, target.fp),
    ]);
    const shown = await Promise.all(schedules.map((schedule) => shortSchedule(this.#session, target, schedule, now)));
    return { target: facts, workers, schedules: shown };
  }

  #measure(active: readonly ListedRun[], now: number): void {
    const meters = new Map<string, RateMeter>();
    for (const { id, state, settled } of active) {
      if (state !== 'running') continue;
      const meter = this.#meters.get(id) ?? new RateMeter();
      meter.observe(now, settled);
      meters.set(id, meter);
    }
    this.#meters = meters;
  }
}

/** The runs of a target that have not ended, by state. */
function liveStates({ baseUrl, account }: Target, active: readonly ListedRun[]): Record<string, number> {
  const states: Record<string, number> = {};
  for (const run of active) {
    if (run.baseUrl === baseUrl && run.account === account) states[run.state] = (states[run.state] ?? 0) + 1;
  }
  return states;
}

/** A target as `status --json` prints it, and its runs that have not ended. */
export async function targetFacts({ redis }: Session, target: Target, active: readonly ListedRun[]) {
  return statusFacts(await readTargetStatus(redis, target), active);
}

/** The same for a status that was already read. */
export function statusFacts(status: TargetStatus, active: readonly ListedRun[]) {
  const { target } = status;
  return { ...targetStatusFacts(status, toTypeAnywhere), fp: target.fp, runs: liveStates(target, active) };
}

/** The processes that may send to a target now. */
export async function readWorkers({ redis }: Session, target: Target) {
  const [processes, connections] = await Promise.all([
    readProcesses(redis, target.fp),
    readConnections(redis, target.fp),
  ]);
  return processes.map(({ name, seenAt, stop }) => ({
    ...targetFields(target),
    process: name,
    seen_at: isoTime(seenAt),
    stop: stopFacts(stop),
    connections: connections.get(name) ?? null,
  }));
}

/** A schedule as `schedule list --json` prints it, and when it is due in words. */
export async function wholeSchedule(session: Session, target: Target, schedule: Schedule, now: number) {
  return {
    ...(await scheduleFacts(session, target, schedule, now)),
    ...targetFields(target),
    when: whenText(schedule),
  };
}

async function shortSchedule(session: Session, target: Target, schedule: Schedule, now: number) {
  const { audit: _, history, ...facts } = await wholeSchedule(session, target, schedule, now);
  return { ...facts, history: history.slice(0, shownHistory) };
}

/** The fields that name the target of an answer. */
export function targetFields({ fp, baseUrl, account }: Target) {
  return { fp, target: baseUrl, account };
}

/** What was measured of a run, and what holds it back. Without `secondsLeft`, it is estimated by the bounds of the run itself. */
type Measured = { standings?: readonly Standing[]; perSecond?: number | null; secondsLeft?: number | null };

function secondsLeftOf(run: ListedRun, perSecond: number | null, now: number): number | null {
  return estimateSecondsLeft(run, { perSecond, limiter: null }, now);
}

/** A run as `runs --json` prints it, with the other fields that a list shows. */
export function runSummary(
  run: ListedRun,
  now: number,
  { standings = [], perSecond = null, secondsLeft = secondsLeftOf(run, perSecond, now) }: Measured = {},
) {
  const { v: _, type: __, ...facts } = listedFacts(run, now);
  return {
    ...facts,
    revision: run.revision,
    standing: standingFacts(standings, toTypeAnywhere),
    fp: targetOf(run.baseUrl, run.account).fp,
    results_by: run.resultsBy || null,
    who: run.who,
    detached: run.detached,
    halt: run.halt || null,
    per_second: run.state === 'running' ? perSecond : null,
    seconds_left: secondsLeft !== null && Number.isFinite(secondsLeft) ? Math.ceil(secondsLeft) : null,
  };
}
