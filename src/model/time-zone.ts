/** A clock change: the first ms after it, how far the clocks move forward (back: below 0), and their offset from UTC afterwards. */
export type Change = { at: number; by: number; ahead: number };

const stepMs = 7 * 86_400_000; // no two changes that cancel each other have ever been closer

/** Finds the first change of the clocks in (from, to], or null. */
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

/** The offset of a zone from UTC, in ms. */
export function offset(tz: string, at: number): number {
  const part = partsAt(tz, at);
  const shown = Date.parse(`${part.year}-${part.month}-${part.day}T${part.hour}:${part.minute}:${part.second}Z`);
  return shown - Math.floor(at / 1_000) * 1_000;
}

const clocks = new Map<string, Intl.DateTimeFormat>();

/** The reading of a clock in a zone, by the names of the parts; hours are 00 to 23, the weekday is like Sun. */
export function partsAt(tz: string, at: number): Partial<Record<Intl.DateTimeFormatPartTypes, string>> {
  const known = clocks.get(tz);
  const clock = known ?? new Intl.DateTimeFormat('en-GB', { timeZone: tz, ...fields });
  if (!known) clocks.set(tz, clock);
  return Object.fromEntries(clock.formatToParts(at).map(({ type, value }) => [type, value]));
}

const fields: Intl.DateTimeFormatOptions = {
  weekday: 'short',
  year: 'numeric',
  month: '2-digit',
  day: '2-digit',
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  hourCycle: 'h23',
};

/** Throws an Error for a name that is not a time zone. */
export function checkZone(tz: string): void {
  try {
    new Intl.DateTimeFormat('en', { timeZone: tz });
  } catch (error) {
    throw new Error(`"${tz}" is not a time zone; expected one like Europe/Berlin or UTC`, { cause: error });
  }
}
