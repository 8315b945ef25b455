import { durationText } from '../config/settings.ts';
import { isoTime } from '../format.ts';
import { readTargetAudit } from '../ledger/audit.ts';
import { readNextAttempt } from '../ledger/backlog.ts';
import { listOpenRuns } from '../ledger/list-runs.ts';
import { readMinGrace } from '../ledger/min-grace.ts';
import { countPending } from '../ledger/run.ts';
import { readAround, targetStandings } from '../ledger/run-standings.ts';
import { findStandings, type Standing, seenFromOutside, standingFacts } from '../ledger/standing.ts';
import { readTargetRevision } from '../ledger/steer-target.ts';
import { learnedStart, readLimit, type TargetState } from '../limiter/read-target.ts';
import { stopFacts } from '../limiter/stop.ts';
import { rateSetting } from '../model/rate.ts';
import type { Target } from '../model/target.ts';
import type { ToType } from '../model/to-type.ts';
import type { RedisClient } from '../redis/client.ts';

/** What Redis holds about a target, with its audit trail: everything that is shown. It survives JSON, as a `RunRecord` does. */
export type TargetRecord = Awaited<ReturnType<typeof readTargetRecord>>;

export async function readTargetRecord(redis: RedisClient, target: Target) {
  const [status, trail, open] = await Promise.all([
    readTargetStatus(redis, target),
    readTargetAudit(redis, target.fp),
    listOpenRuns(redis, target, shownRuns),
  ]);
  const reads = open.runs.map(async (run) => ({ run, nextTryAt: await readNextAttempt(redis, run.id) }));
  const runs = await Promise.all(reads);
  return { status, trail, open: { runs, hasMore: open.hasMore } };
}

const shownRuns = 5;

type OpenRun = TargetRecord['open']['runs'][number];

/** The causes that hold a run of this target back, as seen from outside. Pure but for the clock. */
export function standingsOfOpen(open: OpenRun, { target, limiter, stops, refused }: TargetStatus): Standing[] {
  return findStandings({ ...seenFromOutside, ...open, now: Date.now(), target, limiter, stops, refused });
}

/** A target with its runs that have not ended, for `--json`. */
export function targetRecordFacts({ status, open }: TargetRecord, toType: ToType) {
  const runs = open.runs.map((one) => ({
    run: one.run.id,
    state: one.run.state,
    pending: countPending(one.run),
    standing: standingFacts(standingsOfOpen(one, status), toType),
  }));
  return { ...targetStatusFacts(status, toType), runs, has_more_runs: open.hasMore };
}

/** The state of a target at one moment. */
export type TargetStatus = Awaited<ReturnType<typeof readTargetStatus>>;

/** Reads the state; a target that Redis does not know has no limiter. */
export async function readTargetStatus(redis: RedisClient, target: Target) {
  const { fp } = target;
  const revision = await readTargetRevision(redis, fp); // read first: a change from here on counts as one that was not seen
  const reads = [readAround(redis, fp), readLimit(redis, fp), readMinGrace(redis, fp)] as const;
  const [{ stops, limiter, refused }, { limit, perSecond }, minGrace] = await Promise.all(reads);
  const learned = learnedStart(limiter, perSecond);
  return { target, revision, stops, limiter, limit, minGrace, learned, refused };
}

/** The causes that hold a target back, whatever its runs are. */
export function statusStandings({ target, limiter, stops, refused }: TargetStatus): Standing[] {
  return targetStandings(target, { limiter, stops, refused });
}

/** The state of a target for `--json`. Times are ISO 8601. */
export function targetStatusFacts(status: TargetStatus, toType: ToType) {
  const { target, revision, stops, limiter, limit, minGrace, learned } = status;
  const { baseUrl, account } = target;
  return {
    target: baseUrl,
    account,
    revision,
    standing: standingFacts(statusStandings(status), toType),
    stop: stopFacts(stops.target),
    processes: stops.alive,
    stopped_processes: stops.processes.length,
    per_second: learned?.perSecond ?? null,
    limit: limit && {
      ...limit,
      rate: rateSetting(limit.rate),
      at: isoTime(limit.at),
      until: limit.until > 0 ? isoTime(limit.until) : null,
    },
    min_grace: minGrace && {
      grace: durationText(minGrace.ms),
      who: minGrace.who,
      reason: minGrace.reason,
      at: isoTime(minGrace.at),
    },
    limiter: limiter && limiterFacts(limiter),
  };
}

function limiterFacts({ at, rate, advised, hold, outage, stalled }: TargetState) {
  return {
    per_second: rate,
    advised_per_second: advised,
    hold: hold && { why: hold.kind, reason: hold.reason, until: isoTime(at + hold.leftMs) },
    outage: outage && { reason: outage.reason, since: isoTime(outage.since) },
    nothing_accepted_seconds: Math.floor((stalled?.ms ?? 0) / 1_000),
  };
}
