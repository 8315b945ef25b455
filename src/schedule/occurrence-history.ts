import type { OutboxEvent } from '../ledger/outbox.ts';
import { occurrenceEvent, recoveredOccurrenceEvent } from '../notify/events.ts';
import type { RedisClient } from '../redis/client.ts';
import type { ScheduleLease } from './lease.ts';
import { findNews } from './occurrence-news.ts';
import { type HistoryEntry, parseStoredSettings, withEntry } from './schedule.ts';
import { readHistory, readSchedule, type ScheduleDeps } from './schedule-store.ts';

/** The history of a schedule with one more line, and the event for receivers about that line; null = none. */
export async function extendHistory(
  { ledger: { redis }, target }: ScheduleDeps,
  { fp, name }: ScheduleLease,
  entry: HistoryEntry,
): Promise<{ history: HistoryEntry[]; event: OutboxEvent | null }> {
  const before = await readHistory(redis, fp, name);
  const history = withEntry(before, entry);
  const news = findNews(before, entry);
  const { at, reason, occurrence } = entry;
  const of = { target, name, at, reason };
  if (news === null) return { history, event: null };
  if (news.is === 'recovered') return { history, event: recoveredOccurrenceEvent(of, occurrence, news.occurrences) };
  if (news.is === 'empty' && (await isEmptyAllowed(redis, fp, name))) return { history, event: null };
  return { history, event: occurrenceEvent(of, news.is, occurrence, news.occurrences) };
}

async function isEmptyAllowed(redis: RedisClient, fp: string, name: string): Promise<boolean> {
  const schedule = await readSchedule(redis, fp, name);
  return schedule !== null && parseStoredSettings(schedule).allowEmpty;
}
