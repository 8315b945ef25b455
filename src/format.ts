import { toSingular } from './model/singular.ts';

// Numbers, times and words as people read them. All functions are pure.

/** A count: `249,981` */
export function count(n: number): string {
  return n.toLocaleString('en-US');
}

/** `1 view`, `1,203 views`. `nouns` is a plural that ends in s. */
export function plural(n: number, nouns: string): string {
  return `${count(n)} ${n === 1 ? toSingular(nouns) : nouns}`;
}

/** The same text with a capital first letter. */
export function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** `0.4 s`, `45 s`, `6 min 30 s`, `2 h 5 min`, `3 d 4 h`: the two largest units. */
export function duration(ms: number): string {
  if (ms < 9_950) return `${(ms / 1_000).toFixed(1).replace(/\.0$/, '')} s`;
  const seconds = Math.round(ms / 1_000);
  const at = units.findIndex(([, size]) => seconds >= size);
  const [unit, size] = units[at]!;
  const [below, belowSize] = units[at + 1] ?? ['', 1];
  const rest = Math.floor((seconds % size) / belowSize);
  return `${Math.floor(seconds / size)} ${unit}${below && rest > 0 ? ` ${rest} ${below}` : ''}`;
}

/** `3 h`, `20 s`: the largest unit alone. */
export function roughly(ms: number): string {
  return duration(ms).split(' ').slice(0, 2).join(' ');
}

const units = [
  ['d', 86_400],
  ['h', 3_600],
  ['min', 60],
  ['s', 1],
] as const;

/** A rate in the unit that gives a number of at least 1: `398/s`, `3.2/s`, `12/min`. */
export function rate(perSecond: number): string {
  if (perSecond >= 9.95) return `${count(Math.round(perSecond))}/s`;
  if (perSecond >= 1 || perSecond <= 0) return `${oneDecimal(perSecond)}/s`;
  return perSecond * 60 >= 1 ? `${oneDecimal(perSecond * 60)}/min` : `${oneDecimal(perSecond * 3_600)}/h`;
}

function oneDecimal(n: number): string {
  return n.toFixed(1).replace(/\.0$/, '');
}

/** The time left as a range, because the last minutes say little about the next: `6–7 min left`. */
export function timeLeft(seconds: number): string {
  if (seconds < 10) return 'a few seconds left';
  const [, step, size, unit] = steps.find(([below]) => seconds < below)!;
  const least = Math.floor(seconds / size / step) * step;
  return `${least}–${least + step} ${unit} left`;
}

/** [below this many seconds, step in units, seconds of a unit, unit] */
const steps = [
  [60, 10, 1, 's'],
  [1_200, 1, 60, 'min'],
  [7_200, 10, 60, 'min'],
  [172_800, 1, 3_600, 'h'],
  [Number.POSITIVE_INFINITY, 1, 86_400, 'd'],
] as const;

/** A share: `38.0 %`. Rounded down, so that 100 % means all. */
export function percent(part: number, whole: number): string {
  if (whole === 0 || part >= whole) return '100 %';
  return `${(Math.floor((part / whole) * 1_000) / 10).toFixed(1)} %`;
}

/** `1.5 MB` */
export function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(1)} MB`;
}

/** A moment in UTC: `2026-11-20`, `2026-11-20 16:02 UTC` or `2026-11-20 16:02:41 UTC`. `ms` since 1970. */
export function utcTime(ms: number, precision: 'day' | 'minute' | 'second'): string {
  const length = { day: 10, minute: 16, second: 19 }[precision];
  const text = new Date(ms).toISOString().slice(0, length).replace('T', ' ');
  return precision === 'day' ? text : `${text} UTC`;
}

/** A moment for `--json` and logs, in ISO 8601. `ms` since 1970. */
export function isoTime(ms: number): string {
  return new Date(ms).toISOString();
}

/** A moment that is known to the second: `2026-11-20T16:02:11Z`. */
export function isoSecond(ms: number): string {
  return isoTime(ms).replace(/\.\d+Z$/, 'Z');
}

const soonMs = 120_000;
const todayMs = 43_200_000;

/** A moment by the clock of this machine: `15:00`, within two minutes of `now` `15:00:41`, over twelve hours away `22 Nov 15:00`. Ms since 1970. */
export function timeOfDay(ms: number, now: number): string {
  const at = new Date(ms);
  const away = Math.abs(ms - now);
  const time = at.toTimeString().slice(0, away < soonMs ? 8 : 5);
  return away < todayMs ? time : `${at.getDate()} ${at.toLocaleString('en-US', { month: 'short' })} ${time}`;
}

/** A state, who caused it, and why: `paused by ana (legal hold)`; '' leaves a part out. */
export function stateText(state: string, by: string, reason: string): string {
  return `${state}${by === '' ? '' : ` by ${by}`}${reason === '' ? '' : ` (${reason.replace(/\.$/, '')})`}`;
}

/** `09:42:03 GMT+1`, with two digits of the hour. */
export function timeInZone(ms: number): string {
  return new Date(ms).toLocaleTimeString('en-GB', { timeStyle: 'long' });
}

/** The text with a full stop, unless it already ends as a sentence. */
export function asSentence(text: string): string {
  return /[.?!]$/.test(text) ? text : `${text}.`;
}
