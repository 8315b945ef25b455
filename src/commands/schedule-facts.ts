import type { Target } from '../model/target.ts';
import type { HistoryEntry } from '../schedule/history.ts';
import type { Schedule } from '../schedule/schedule.ts';
import { readAudit, readHistory } from '../schedule/schedule-store.ts';
import { nextSlot } from '../schedule/slots.ts';
import type { Session } from './session.ts';

/** A schedule as `--json` shows it: what was asked for, how it stands, what became of its slots, and who did what to it. */
export async function scheduleFacts({ redis }: Session, { fp }: Target, schedule: Schedule, now: number) {
  const { name, state, reason, who, cron, tz, from, overlap, missed, settings, note } = schedule;
  const [history, audit] = await Promise.all([readHistory(redis, fp, name), readAudit(redis, fp, name)]);
  return {
    ...{ name, state, reason, who, paused_by: schedule.pausedBy || null, changed_at: iso(schedule.changedAt) },
    ...{ cron, tz, next: state === 'active' ? iso(nextSlot(schedule, now)) : null },
    ...{ from, overlap, missed, grace_ms: schedule.graceMs, max_growth: schedule.maxGrowth },
    ...{ allow_empty: schedule.allowEmpty, priority: schedule.priority, settings, note, last_run: schedule.lastRun },
    protected_list: schedule.protectedList,
    history: history.map(entryFacts),
    audit: audit.map(({ at, ...entry }) => ({ at: iso(at), ...entry })),
  };
}

function entryFacts({ slot, at, ...entry }: HistoryEntry) {
  return { slot: iso(slot), at: iso(at), ...entry };
}

function iso(ms: number): string {
  return new Date(ms).toISOString();
}
