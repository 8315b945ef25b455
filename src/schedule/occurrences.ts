import { CronExpressionParser } from 'cron-parser';
import { type Change, checkZone, findChange, offset } from '../model/time-zone.ts';

/** The times at which a schedule is due: a cron pattern of five fields, or six with seconds, in a time zone. */
export type Timing = { cron: string; tz: string };

/**
 * The next slot after a moment, in ms since 1970. The parser works in UTC, and each time it gives is converted to the zone. At a clock
 * change, a time that does not exist moves forward by the missing time, and a time that comes twice counts once. Patterns of every hour follow
 * the clocks through the change. Libraries that know zones have other rules: croner moves a missing time to the end of the gap, and runs
 * `15,45 1,2,3 * * *` twice in a repeated hour.
 */
export function nextSlot({ cron, tz }: Timing, after: number): number {
  const everyHour = CronExpressionParser.parse(cron, { tz: 'UTC' }).fields.hour.values.length === 24;
  let earliest = Number.POSITIVE_INFINITY;
  let change: Change = { at: after - dayMs, by: 0, ahead: offset(tz, after - dayMs) };
  for (;;) {
    const isAgain = everyHour ? 0 : Math.max(0, -change.by); // for how long the clocks repeat times
    const slot = nextTime(cron, Math.max(after, change.at + isAgain - 1) + change.ahead) - change.ahead;
    const next = findChange(tz, change.at, Math.min(slot, earliest));
    if (next === null) return Math.min(slot, earliest);
    const isMoved = everyHour ? 0 : Math.max(0, next.by); // for how long the old clocks would show missing times
    if (slot < next.at + isMoved) earliest = Math.min(slot, earliest);
    change = next;
  }
}

/** The next `count` slots. */
export function nextSlots(timing: Timing, after: number, count: number): number[] {
  const slots: number[] = [];
  while (slots.length < count) slots.push(nextSlot(timing, slots.at(-1) ?? after));
  return slots;
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
    nextSlot({ cron, tz }, Date.now());
  } catch (error) {
    throw new Error(`"${cron}" never matches a time (${(error as Error).message})`, { cause: error });
  }
}

/** The slots in (after, now]: the last of them, and their number, counted up to `countedAtMost`. */
export type Due = { latest: number; count: number };

const countedAtMost = 1_000;

/** The slots that are due, or null. Bounded, even if a schedule of every second was not handled for years. */
export function dueSlots(timing: Timing, after: number, now: number): Due | null {
  let [latest, count, slot] = [0, 0, nextSlot(timing, after)];
  for (; slot <= now && count < countedAtMost; slot = nextSlot(timing, slot)) [latest, count] = [slot, count + 1];
  if (count === 0) return null;
  return slot <= now ? { latest: latestSlot(timing, latest, now), count } : { latest, count };
}

/** The next time of a pattern after a given time, in UTC. */
function nextTime(cron: string, after: number): number {
  return CronExpressionParser.parse(cron, { tz: 'UTC', currentDate: new Date(after) })
    .next()
    .getTime();
}

const dayMs = 86_400_000; // no clock change was ever larger

/** The last slot in [known, now], searched in increasing spans before now. */
function latestSlot(timing: Timing, known: number, now: number): number {
  for (let lookMs = 60_000; now - lookMs > known; lookMs *= 4) {
    const found = lastOf(timing, now - lookMs, now);
    if (found !== null) return found;
  }
  return lastOf(timing, known, now) ?? known;
}

function lastOf(timing: Timing, after: number, now: number): number | null {
  let last: number | null = null;
  for (let slot = nextSlot(timing, after); slot <= now; slot = nextSlot(timing, slot)) last = slot;
  return last;
}
