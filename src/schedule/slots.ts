import { CronExpressionParser } from 'cron-parser';

/** When a schedule is due: a cron pattern of five fields, or six with seconds, by the clocks of a time zone. */
export type Timing = { cron: string; tz: string };

/**
 * The next slot after a moment, in ms since 1970. The parser only sees clocks that never change, and each time it names is put where those of
 * the zone show it. At a clock change: a time that does not exist moves on by what is missing; one that comes twice counts once. Patterns that
 * name every hour go through the change as the clocks do.
 */
export function nextSlot({ cron, tz }: Timing, after: number): number {
  const everyHour = CronExpressionParser.parse(cron, { tz: 'UTC' }).fields.hour.values.length === 24;
  let earliest = Number.POSITIVE_INFINITY;
  let change: Change = { at: after - dayMs, by: 0, ahead: offset(tz, after - dayMs) };
  for (;;) {
    const isAgain = everyHour ? 0 : Math.max(0, -change.by); // so long the clocks show what they have shown
    const slot = nextTime(cron, Math.max(after, change.at + isAgain - 1) + change.ahead) - change.ahead;
    const next = findChange(tz, change.at, Math.min(slot, earliest));
    if (next === null) return Math.min(slot, earliest);
    const isMoved = everyHour ? 0 : Math.max(0, next.by); // so long the old clocks would show what is missing
    if (slot < next.at + isMoved) earliest = Math.min(slot, earliest);
    change = next;
  }
}

/** The next time after another one, on clocks that never change. */
function nextTime(cron: string, after: number): number {
  return CronExpressionParser.parse(cron, { tz: 'UTC', currentDate: new Date(after) })
    .next()
    .getTime();
}

const dayMs = 86_400_000; // no clock was ever changed by more

/** A change of the clocks: the first ms after it, by how much they went forward (back: below 0), and what they are ahead of UTC from then on. */
export type Change = { at: number; by: number; ahead: number };

const stepMs = 7 * dayMs; // no two changes were ever closer that cancel each other

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

/** What the clocks of a zone are ahead of UTC, in ms. */
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

/** The next so many slots. */
export function nextSlots(timing: Timing, after: number, count: number): number[] {
  const slots: number[] = [];
  while (slots.length < count) slots.push(nextSlot(timing, slots.at(-1) ?? after));
  return slots;
}

/** Throws an Error that says what was expected. */
export function checkTiming({ cron, tz }: Timing): void {
  checkZone(tz);
  const fields = cron.trim().split(/\s+/).length;
  if (!cron.startsWith('@') && fields !== 5 && fields !== 6) {
    throw new Error(
      `expected five fields like "0 3 * * *", or six with seconds, got ${cron.trim() === '' ? 'none' : fields}`,
    );
  }
  // H stands for another time each time it is read.
  if (/(^|[\s,])H/.test(cron)) throw new Error('H has no place in it: name the time');
  try {
    nextSlot({ cron, tz }, Date.now());
  } catch (error) {
    throw new Error(`"${cron}" is no time that ever comes (${(error as Error).message})`, { cause: error });
  }
}

function checkZone(tz: string): void {
  try {
    new Intl.DateTimeFormat('en', { timeZone: tz });
  } catch (error) {
    throw new Error(`"${tz}" is no time zone; expected one like Europe/Berlin or UTC`, { cause: error });
  }
}

/** The slots in (after, now]: the last of them, and how many there are, counted up to `countedAtMost`. */
export type Due = { latest: number; count: number };

const countedAtMost = 1_000;

/** Null if no slot has come since. Bounded also where a schedule of seconds was left alone for years. */
export function dueSlots(timing: Timing, after: number, now: number): Due | null {
  let [latest, count, slot] = [0, 0, nextSlot(timing, after)];
  for (; slot <= now && count < countedAtMost; slot = nextSlot(timing, slot)) [latest, count] = [slot, count + 1];
  if (count === 0) return null;
  return slot <= now ? { latest: latestSlot(timing, latest, now), count } : { latest, count };
}

/** The last slot in [known, now], searched in ever longer times before now. */
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
