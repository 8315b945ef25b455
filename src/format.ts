import { duration } from './model/numbers.ts';

export { capital, count, duration, percent, plural, rate } from './model/numbers.ts';

// Numbers, times and words as people read them. All functions are pure.

/** `3 h`, `20 s`: the largest unit alone. */
export function roughly(ms: number): string {
  return duration(ms).split(' ').slice(0, 2).join(' ');
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
