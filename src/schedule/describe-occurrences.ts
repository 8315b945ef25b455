import { type Change, findChange, partsAt } from '../model/time-zone.ts';
import { nextOccurrence, nextOccurrences, type Timing } from './occurrences.ts';

/** An occurrence for people: the local time, the time in UTC, and the effect of a clock change. */
export type OccurrenceDescription = { local: string; utc: string; note: string };

/** Describes the next `count` occurrences; `note` is '' without a clock change. */
export function previewOccurrences(timing: Timing, after: number, count: number): OccurrenceDescription[] {
  const occurrences = nextOccurrences(timing, after, count);
  return occurrences.map((occurrence, i) => ({
    ...describeOccurrence(timing.tz, occurrence),
    note: clockChangeNote(timing, occurrences[i - 1] ?? after, occurrence),
  }));
}

/** An occurrence in local time and in UTC: `Sun 2027-03-14 03:30 EDT`, and `07:30 UTC`. */
export function describeOccurrence(tz: string, at: number): Omit<OccurrenceDescription, 'note'> {
  const { weekday, date, time } = wallClock(tz, at);
  return { local: `${weekday} ${date} ${time} ${zoneName(tz, at)}`, utc: `${wallClock('UTC', at).time} UTC` };
}

type WallClock = { weekday: string; date: string; time: string };

function wallClock(tz: string, at: number): WallClock {
  const part = partsAt(tz, at);
  const seconds = part.second === '00' ? '' : `:${part.second}`;
  return {
    weekday: part.weekday!,
    date: `${part.year}-${part.month}-${part.day}`,
    time: `${part.hour}:${part.minute}${seconds}`,
  };
}

/**
 * The short name of a zone, as in EDT, CEST, AEDT. Each English locale knows the names of some zones; other zones are shown as the offset from UTC.
 */
function zoneName(tz: string, at: number): string {
  const names = ['en-US', 'en-GB', 'en-AU'].map((locale) => {
    const format = new Intl.DateTimeFormat(locale, { timeZone: tz, timeZoneName: 'short' });
    return format.formatToParts(at).find(({ type }) => type === 'timeZoneName')!.value;
  });
  return names.find((name) => !/^(GMT|UTC)[+-]/.test(name)) ?? names[0]!;
}

const dayMs = 86_400_000;

/** The effect of a clock change on the occurrences between two: which times it skips, and which times come twice. */
function clockChangeNote(timing: Timing, before: number, occurrence: number): string {
  const from = Math.max(before, occurrence - dayMs);
  const change = findChange(timing.tz, from, occurrence);
  const repeated = repeatedHour(timing.tz, occurrence);
  if (repeated !== null) return repeatedNote(timing, occurrence, repeated);
  if (change === null || change.by < 0) return '';
  const missing = missingTimes(timing, change);
  if (missing.length === 0) return '';
  const { date, weekday } = missing[0]!;
  const day = date === wallClock(timing.tz, occurrence).date ? 'that day' : `on ${weekday} ${date}`;
  return `${list(missing.map(({ time }) => time))} ${missing.length === 1 ? 'does' : 'do'} not exist ${day}`;
}

/** The times of the pattern that a clock change skips. */
function missingTimes({ cron }: Timing, { at, by, ahead }: Change): WallClock[] {
  const end = at + ahead; // as if it were UTC
  const times: WallClock[] = [];
  for (let occurrence = end - by - 1; times.length < maxShown; ) {
    occurrence = nextOccurrence({ cron, tz: 'UTC' }, occurrence);
    if (occurrence >= end) break;
    times.push(wallClock('UTC', occurrence));
  }
  return times;
}

const maxShown = 4;

/** The clock change that repeats the local time of an occurrence; null if the time comes once. */
function repeatedHour(tz: string, occurrence: number): Change | null {
  const change = findChange(tz, occurrence - dayMs / 2, occurrence + dayMs / 2);
  if (change === null || change.by >= 0) return null;
  const isRepeated = occurrence >= change.at + change.by && occurrence < change.at - change.by;
  return isRepeated ? change : null;
}

function repeatedNote(timing: Timing, occurrence: number, { at, by }: Change): string {
  const { time } = wallClock(timing.tz, occurrence);
  if (occurrence >= at) return `${time} comes twice that day, this is the second`;
  return `${time} comes twice that day, this is the first${nextOccurrence(timing, occurrence - by - 1) === occurrence - by ? '' : ' and the only run'}`;
}

function list(times: string[]): string {
  if (times.length >= maxShown) return `${times[0]}, ${times[1]} and others`;
  return times.length === 1 ? times[0]! : `${times.slice(0, -1).join(', ')} and ${times.at(-1)}`;
}
