import { listOrigins } from '../config/parse-url.ts';
import { ExpungeError } from '../errors.ts';
import { isoTime } from '../format.ts';
import { suggest } from '../model/suggest.ts';
import { commandFor, type Target } from '../model/target.ts';
import { occurrencesInARow } from '../schedule/occurrence-news.ts';
import { nextOccurrence } from '../schedule/occurrences.ts';
import { type HistoryEntry, type Schedule, toOccurrenceResult } from '../schedule/schedule.ts';
import { listSchedules, readAudit, readHistory, readSchedule } from '../schedule/schedule-store.ts';
import { targetName } from '../terminal/stop-text.ts';
import type { Session } from './session.ts';

/** The schedule of that name. Throws USAGE if there is none. */
export async function findSchedule({ redis }: Session, target: Target, name: string): Promise<Schedule> {
  const schedule = await readSchedule(redis, target.fp, name);
  if (schedule !== null && schedule.state !== 'removed') return schedule;
  throw unknownSchedule(await listSchedules(redis, target.fp), target, name);
}

/** The error for a name that none of these schedules has. */
export function unknownSchedule(known: readonly Schedule[], target: Target, name: string): ExpungeError {
  const names = known.map((schedule) => schedule.name);
  return new ExpungeError('USAGE', `no schedule of ${targetName(target)} is called "${name}".${suggest(name, names)}`, {
    next: (toType) => `${commandFor(toType, 'schedule list', target)} shows them`,
  });
}

/**
 * A schedule as Redis holds it, its last occurrences, and its facts for `--json`: everything that is shown. It survives JSON, as a `RunRecord` does.
 */
export type ScheduleRecord = { schedule: Schedule; history: HistoryEntry[]; facts: Record<string, unknown> };

/** Reads the schedules of a target. */
export async function readScheduleRecords(session: Session, target: Target, now: number): Promise<ScheduleRecord[]> {
  const all = await listSchedules(session.redis, target.fp);
  const records = all.map(async (schedule) => {
    const past = await readPast(session, target, schedule.name);
    return { schedule, history: past.history, facts: factsOf(schedule, past, now) };
  });
  return Promise.all(records);
}

/** A schedule for `--json`: its definition, state, history and audit trail. */
export async function scheduleFacts(session: Session, target: Target, schedule: Schedule, now: number) {
  return factsOf(schedule, await readPast(session, target, schedule.name), now);
}

type Past = Awaited<ReturnType<typeof readPast>>;

async function readPast({ redis }: Session, { fp }: Target, name: string) {
  const [history, audit] = await Promise.all([readHistory(redis, fp, name), readAudit(redis, fp, name)]);
  return { history, audit };
}

function factsOf(schedule: Schedule, { history, audit }: Past, now: number) {
  const { name, state, reason, who, cron, tz, from, missed, settings, note } = schedule;
  return {
    name,
    state,
    revision: schedule.revision,
    reason,
    who,
    paused_by: schedule.pausedBy || null,
    changed_at: isoTime(schedule.changedAt),
    cron,
    tz,
    next: state === 'active' ? isoTime(nextOccurrence(schedule, now)) : null,
    from,
    missed,
    max_delay_ms: schedule.maxDelayMs,
    max_growth: schedule.maxGrowth,
    max_duration_seconds: schedule.maxActiveMs === 0 ? null : schedule.maxActiveMs / 1_000,
    stop_at: schedule.stopAt || null,
    heartbeat: schedule.heartbeat === '' ? null : listOrigins([schedule.heartbeat]),
    settings,
    note,
    last_run: schedule.lastRun,
    at_most: schedule.atMost || null,
    retry_failed: schedule.retryFailed,
    carried_over: schedule.carriedOver?.ids ?? 0,
    failed_occurrences: occurrencesInARow(history, 'failed'),
    protected_list: schedule.protectedList,
    history: history.map(entryFacts),
    audit: audit.map(({ at, ...entry }) => ({ at: isoTime(at), ...entry })),
  };
}

export type HistoryFacts = ReturnType<typeof entryFacts>;

function entryFacts(entry: HistoryEntry) {
  const { occurrence, at, carriedOver, ...facts } = entry;
  const times = { occurrence: isoTime(occurrence), at: isoTime(at) };
  return { ...times, result: toOccurrenceResult(entry), ...facts, carried_over: carriedOver };
}
