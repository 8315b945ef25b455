import { CronExpressionParser } from 'cron-parser';
import { type Change, checkZone, findChange, offset } from '../model/time-zone.ts';

/** The times at which a schedule is due: a cron pattern of five fields, or six with seconds, in a time zone. */
export type Timing = { cron: string; tz: string };

/**
 * The next occurrence after a moment, in ms since 1970. The parser works in UTC, and each time it gives is converted to the zone. At a clock change,
 * a time that does not exist moves forward by the missing time, and a time that comes twice counts once. Patterns of every hour follow the clocks
 * through the change. Libraries that know zones have other rules: croner moves a missing time to the end of the gap, and runs `15,45 1,2,3 * * *`
 * twice in a repeated hour.
 */
export function nextOccurrence({ cron, tz }: Timing, after: number): number {
  const everyHour = CronExpressionParser.parse(cron, { tz: 'UTC' }).fields.hour.values.length === 24;
  let earliest = Number.POSITIVE_INFINITY;
  let change: Change = { at: after - dayMs, by: 0, ahead: offset(tz, after - dayMs) };
  for (;;) {
    const isAgain = everyHour ? 0 : Math.max(0, -change.by); // for how long the clocks repeat times
    const occurrence = nextTime(cron, Math.max(after, change.at + isAgain - 1) + change.ahead) - change.ahead;
    const next = findChange(tz, change.at, Math.min(occurrence, earliest));
    if (next === null) return Math.min(occurrence, earliest);
    const isMoved = everyHour ? 0 : Math.max(0, next.by); // for how long the old clocks would show missing times
    if (occurrence < next.at + isMoved) earliest = Math.min(occurrence, earliest);
    change = next;
  }
}

/** The next `count` occurrences. */
export function nextOccurrences(timing: Timing, after: number, count: number): number[] {
  const occurrences: number[] = [];
  while (occurrences.length < count) occurrences.push(nextOccurrence(timing, occurrences.at(-1) ?? after));
  return occurrences;
}

/** Throws an Error that says what was expected if the pattern or zone is invalid. */
export function checkTiming({ cron, tz }: Timing): void {
  checkZone(tz);
  const fields = cron.trim().split(/\s+/).length;
  if (!cron.startsWith('@') && fields !== 5 && fields !== 6) {
    throw new Error(
      `expected five fields like "0 3 * * *", or six with seconds, got ${cron.trim() === '' ? 'none' : fields}`,
    );
  }
  // The parser replaces H with another time at each reading.
  if (/(^|[\s,])H/.test(cron)) throw new Error('H is not supported: name the time');
  try {
    nextOccurrence({ cron, tz }, Date.now());
  } catch (error) {
    throw new Error(`"${cron}" never matches a time (${(error as Error).message})`, { cause: error });
  }
}

/** The occurrences in (after, now]: the last of them, and their number, counted up to `maxCounted`. */
export type Due = { latest: number; count: number };

const maxCounted = 1_000;

/** The occurrences that are due, or null. Bounded, even if a schedule of every second was not handled for years. */
export function dueOccurrences(timing: Timing, after: number, now: number): Due | null {
  let [latest, count, occurrence] = [0, 0, nextOccurrence(timing, after)];
  for (; occurrence <= now && count < maxCounted; occurrence = nextOccurrence(timing, occurrence))
    [latest, count] = [occurrence, count + 1];
  if (count === 0) return null;
  return occurrence <= now ? { latest: latestOccurrence(timing, latest, now), count } : { latest, count };
}

/** The next time of a pattern after a given time, in UTC. */
function nextTime(cron: string, after: number): number {
  return CronExpressionParser.parse(cron, { tz: 'UTC', currentDate: new Date(after) })
    .next()
    .getTime();
}

const dayMs = 86_400_000; // no clock change was ever larger

/** The last occurrence in [known, now], searched in increasing spans before now. */
function latestOccurrence(timing: Timing, known: number, now: number): number {
  for (let lookMs = 60_000; now - lookMs > known; lookMs *= 4) {
    const found = lastOf(timing, now - lookMs, now);
    if (found !== null) return found;
  }
  return lastOf(timing, known, now) ?? known;
}

function lastOf(timing: Timing, after: number, now: number): number | null {
  let last: number | null = null;
  for (
    let occurrence = nextOccurrence(timing, after);
    occurrence <= now;
    occurrence = nextOccurrence(timing, occurrence)
  )
    last = occurrence;
  return last;
}
