import { CronExpressionParser } from 'cron-parser';

/** When a schedule is due: a cron pattern of five fields, or six with seconds, by the clocks of a time zone. */
export type Timing = { cron: string; tz: string };

/**
 * The next slot after a moment, in ms since 1970: from the parser of BullMQ's schedulers, asked as they ask it. At a clock change:
 * a time that does not exist moves on by the hour that is missing; one that comes twice counts once, unless the pattern names every hour.
 */
export function nextSlot({ cron, tz }: Timing, after: number): number {
  return CronExpressionParser.parse(cron, { tz, currentDate: new Date(after) })
    .next()
    .getTime();
}

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
