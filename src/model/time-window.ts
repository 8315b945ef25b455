import { checkZone, findChange, offset } from './time-zone.ts';

/** The times when the requests of a run may be sent: spans of minutes of the week, from Monday 00:00 on, by the clocks of a time zone. */
export type TimeWindow = { tz: string; spans: readonly (readonly [from: number, to: number])[] };

const days = ['Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat', 'Sun'];
const dayMinutes = 1_440;
const weekMinutes = 7 * dayMinutes;

/**
 * Reads `--window`: `Mon-Fri 22:00-06:00, Sat 08:00-24:00 Europe/Berlin`. Without days it means every day, without a zone UTC. The day is the one on
 * which a span begins, as a span may continue past midnight. Throws an Error that says what was expected.
 */
export function parseTimeWindow(text: string): TimeWindow {
  const [, list = '', tz = 'UTC'] = /^(.*?\d)(?:\s+([A-Za-z][\w/+-]*))?\s*$/.exec(text) ?? [];
  const spans = list.split(',').flatMap((part) => spansOf(part.trim(), text));
  checkZone(tz);
  return { tz, spans };
}

/** Reads a stored window; null if there is none, or if another version wrote it in another form. */
export function readTimeWindow(text: string): TimeWindow | null {
  try {
    return parseTimeWindow(text);
  } catch {
    return null;
  }
}

/** Normalizes `--window`; `always` takes the window away from a run that has one. */
export function timeWindowSetting(text: string): string {
  if (text.trim() === always) return always;
  parseTimeWindow(text);
  return text.trim().replace(/\s+/g, ' ').replace(/ ?, ?/g, ', ');
}

export const always = 'always';

function spansOf(part: string, text: string): [number, number][] {
  const match = /^(?:([a-z]{3})(?:-([a-z]{3}))? )?(\d\d):([0-5]\d) ?- ?(\d\d):([0-5]\d)$/i.exec(
    part.replace(/\s+/g, ' '),
  );
  const [first, last] = [dayOf(match?.[1] ?? 'Mon'), dayOf(match?.[2] ?? match?.[1] ?? 'Sun')];
  const [from, to] = [minuteOf(match?.[3], match?.[4]), minuteOf(match?.[5], match?.[6])];
  const isValid = match !== null && first >= 0 && last >= 0 && from < dayMinutes && to <= dayMinutes && from !== to;
  if (!isValid) throw new Error(`expected times like "Mon-Fri 22:00-06:00 Europe/Berlin", got "${text}"`);
  const length = to > from ? to - from : to - from + dayMinutes;
  return Array.from({ length: ((last - first + 7) % 7) + 1 }, (_, i) => {
    const start = ((first + i) % 7) * dayMinutes + from;
    return [start, start + length];
  });
}

function dayOf(word: string): number {
  return days.findIndex((day) => day.toLowerCase() === word.toLowerCase());
}

function minuteOf(hours = '99', minutes = '0'): number {
  return 60 * Number(hours) + Number(minutes);
}

/** Whether a time window is open, and until when: ms since 1970, infinite if it is open all week. */
export type WindowState = { isOpen: boolean; until: number };

const maxMs = 15 * dayMinutes * 60_000; // more than a week and the largest clock change

/**
 * The state of a window at a moment, ms since 1970. It is open while the clocks of its zone show a time inside. So an hour that comes twice counts
 * twice, and an hour that the clocks skip does not count. Pure.
 */
export function windowStateAt(window: TimeWindow, at: number): WindowState {
  const isOpen = isOpenAt(window, at);
  for (let from = at; from < at + maxMs; ) {
    const ahead = offset(window.tz, from);
    const edge = nextEdge(window, from + ahead) - ahead;
    from = findChange(window.tz, from, edge)?.at ?? edge; // the clocks may change before, and then show another time
    if (isOpenAt(window, from) !== isOpen) return { isOpen, until: from };
  }
  return { isOpen, until: Number.POSITIVE_INFINITY };
}

/** A moment by the clocks of a window: `Mon 22:00 Europe/Berlin`. */
export function windowTime({ tz }: TimeWindow, at: number): string {
  const minute = minuteOfWeek(at + offset(tz, at));
  const time = [Math.floor(minute / 60) % 24, minute % 60].map((n) => String(n).padStart(2, '0')).join(':');
  return `${days[Math.floor(minute / dayMinutes)]} ${time} ${tz}`;
}

function isOpenAt({ tz, spans }: TimeWindow, at: number): boolean {
  const minute = minuteOfWeek(at + offset(tz, at));
  return spans.some(([from, to]) => (minute - from + weekMinutes) % weekMinutes < to - from);
}

/** The next moment at which a span begins or ends, by the clocks of a zone. */
function nextEdge({ spans }: TimeWindow, shown: number): number {
  const monday = shown - (shown % 60_000) - minuteOfWeek(shown) * 60_000;
  const edges = spans
    .flat()
    .flatMap((minute) => [0, weekMinutes].map((week) => monday + (week + (minute % weekMinutes)) * 60_000));
  return Math.min(...edges.filter((edge) => edge > shown));
}

const firstMonday = 4 * dayMinutes; // 5 January 1970

/** The minute of the week on clocks that show `shown`: ms since 1970 as if in UTC. */
function minuteOfWeek(shown: number): number {
  return (((Math.floor(shown / 60_000) - firstMonday) % weekMinutes) + weekMinutes) % weekMinutes;
}
