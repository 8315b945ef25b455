import { capital, duration as durationOf, units } from '/assets/model/numbers.js';

export { capital, count, percent, plural, rate } from '/assets/model/numbers.js';

// Numbers and times for people. All pure.

/** The text as a sentence. */
export function sentence(text: string) {
  return `${capital(text).replace(/\.$/, '')}.`;
}

/** The text of a command without the flags of a terminal: `as “rate” allows`. */
export function withoutFlags(text: string) {
  return text.replace(/(?<![\w-])--([a-z][a-z-]*[a-z])/g, (_, flag: string) => `“${flag.replaceAll('-', ' ')}”`);
}

/** `0.4 s`, `45 s`, `6 min 30 s`, `2 h 5 min`: the two largest units. */
export function duration(seconds: number) {
  return durationOf(1_000 * seconds);
}

/** `0.31 ms`, `12 ms`, `1.2 s` */
export function millis(ms: number) {
  return ms < 1_000 ? `${Number(ms.toPrecision(2))} ms` : `${Number((ms / 1_000).toPrecision(2))} s`;
}

/** `1.5 MB` */
export function size(bytes: number) {
  return bytes < 1e6 ? `${Math.max(1, Math.round(bytes / 1e3))} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
}

/** The end, if this much time is left, as a range: `between 14:05 and 14:12`. */
export function endRange({ least, most }: { least: number; most: number }, now: number) {
  const [from, to] = [clock(now + least * 1_000), clock(now + most * 1_000)];
  return from === to ? `about ${from}` : `between ${from} and ${to}`;
}

const minStep = 10;

/** An extrapolated time as a range: the last minutes say little about the next ones. */
export function estimateRange(seconds: number) {
  return { least: seconds * 0.9, most: seconds * 1.2 + minStep };
}

/** `6–8 min`, `a few seconds`: in the largest unit of which there are at least two. */
export function leftText({ least, most }: { least: number; most: number }) {
  if (most < minStep * 1.5) return 'a few seconds';
  const [unit, size] = units.find(([, size]) => most >= 2 * size) ?? ['s', 1];
  const [from, to] = [Math.round(least / size), Math.round(most / size)];
  return from === to ? `about ${to} ${unit}` : `${from}–${to} ${unit}`;
}

const dayMs = 86_400_000;

/** `15:00`; on another day `22 Nov 15:00`, in another year `22 Nov 2025 15:00`, by the clock of this machine. */
export function clock(ms: number, now = Date.now()) {
  const at = new Date(ms);
  const time = at.toTimeString().slice(0, 5);
  const isToday = Math.abs(ms - now) < dayMs && at.getDate() === new Date(now).getDate();
  if (isToday) return time;
  const year = at.getFullYear() === new Date(now).getFullYear() ? '' : `${at.getFullYear()} `;
  return `${at.getDate()} ${at.toLocaleString('en-US', { month: 'short' })} ${year}${time}`;
}

/** The time zone of this machine: `Europe/Berlin, UTC+1`; for UTC just `UTC`. */
export function zone(name = Intl.DateTimeFormat().resolvedOptions().timeZone, at = new Date()) {
  const parts = new Intl.DateTimeFormat('en-US', { timeZone: name, timeZoneName: 'shortOffset' }).formatToParts(at);
  const offset = (parts.find(({ type }) => type === 'timeZoneName')?.value ?? '').replace('GMT', 'UTC');
  return name === 'UTC' ? name : `${name}, ${offset}`;
}

/** `15:00:41`, on another day with the date. */
export function moment(iso: string) {
  const at = new Date(iso);
  return `${clock(at.getTime())}:${String(at.getSeconds()).padStart(2, '0')}`;
}

/** A time in UTC: `2026-11-20 16:02:41 UTC`. */
export function utc(iso: string) {
  return `${new Date(iso).toISOString().slice(0, 19).replace('T', ' ')} UTC`;
}

/** The host in a base URL, with its path. */
export function parseHost(url: string) {
  return url.replace(/^https?:\/\//, '');
}
