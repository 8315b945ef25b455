import { CronExpressionParser } from 'cron-parser';

/** When a schedule is due: a cron pattern of five fields, or six with seconds, in a time zone. */
export type Timing = { cron: string; tz: string };

/**
 * The next slot after a moment, in ms since 1970. The parser works in UTC, and each time it gives is converted to the zone. At a clock
 * change, a time that does not exist moves forward by the missing time, and one that comes twice counts once. Patterns of every hour follow
 * the clocks through the change.
 */
export function nextSlot({ cron, tz }: Timing, after: number): number {
  const everyHour = CronExpressionParser.parse(cron, { tz: 'UTC' }).fields.hour.values.length === 24;
  let earliest = Number.POSITIVE_INFINITY;
  let change: Change = { at: after - dayMs, by: 0, ahead: offset(tz, after - dayMs) };
  for (;;) {
    const isAgain = everyHour ? 0 : Math.max(0, -change.by); // this long the clocks repeat times
    const slot = nextTime(cron, Math.max(after, change.at + isAgain - 1) + change.ahead) - change.ahead;
    const next = findChange(tz, change.at, Math.min(slot, earliest));
    if (next === null) return Math.min(slot, earliest);
    const isMoved = everyHour ? 0 : Math.max(0, next.by); // this long the old clocks would show missing times
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

/** Throws an Error that says what was expected, for an invalid pattern or zone. */
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

/** The slots in (after, now]: the last of them, and how many there are, counted up to `countedAtMost`. */
export type Due = { latest: number; count: number };

const countedAtMost = 1_000;

/** The slots that are due, or null. Bounded, even if a schedule of every second was not handled for years. */
export function dueSlots(timing: Timing, after: number, now: number): Due | null {
  let [latest, count, slot] = [0, 0, nextSlot(timing, after)];
  for (; slot <= now && count < countedAtMost; slot = nextSlot(timing, slot)) [latest, count] = [slot, count + 1];
  if (count === 0) return null;
  return slot <= now ? { latest: latestSlot(timing, latest, now), count } : { latest, count };
}

/** The next time of a pattern after another one, in UTC. */
function nextTime(cron: string, after: number): number {
  return CronExpressionParser.parse(cron, { tz: 'UTC', currentDate: new Date(after) })
    .next()
    .getTime();
}

const dayMs = 86_400_000; // no clock change was ever larger

/** A clock change: the first ms after it, by how much the clocks move forward (back: below 0), and their offset from UTC afterwards. */
export type Change = { at: number; by: number; ahead: number };

const stepMs = 7 * dayMs; // no two changes that cancel each other were ever closer

/** The first change of the clocks in (from, to], or null. */
export function findChange(tz: string, from: number, to: number): Change | null {
  const first = offset(tz, from);
  let low = from;
  for (; low < to && offset(tz, Math.min(low + stepMs, to)) === first; low += stepMs);
  if (low >= to) return null;
  let high = Math.min(low + stepMs, to);
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (offset(tz, middle) === first) low = middle;
    else high = middle;
  }
  const ahead = offset(tz, high);
  return { at: high, by: ahead - first, ahead };
}

const clocks = new Map<string, Intl.DateTimeFormat>();

/** The offset of a zone from UTC, in ms. */
function offset(tz: string, at: number): number {
  const known = clocks.get(tz);
  const clock = known ?? new Intl.DateTimeFormat('en-GB', { timeZone: tz, ...fields });
  if (!known) clocks.set(tz, clock);
  const part = Object.fromEntries(clock.formatToParts(at).map(({ type, value }) => [type, value]));
  const shown = Date.parse(`${part.year}-${part.month}-${part.day}T${part.hour}:${part.minute}:${part.second}Z`);
  return shown - Math.floor(at / 1_000) * 1_000;
}

const fields: Intl.DateTimeFormatOptions = {
  ...{ year: 'numeric', month: '2-digit', day: '2-digit' },
  ...{ hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23' },
};

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

function checkZone(tz: string): void {
  try {
    new Intl.DateTimeFormat('en', { timeZone: tz });
  } catch (error) {
    throw new Error(`"${tz}" is no time zone; expected one like Europe/Berlin or UTC`, { cause: error });
  }
}
