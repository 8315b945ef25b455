// Numbers as people read them. All pure.

/** 249,981 */
export function count(n: number): string {
  return n.toLocaleString('en-US');
}

/** `1 view`, `1,203 views`. The noun is given in the plural, and loses its s for one. */
export function plural(n: number, nouns: string): string {
  return `${count(n)} ${n === 1 ? nouns.replace(/s$/, '') : nouns}`;
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

/** `398/s`, `3.2/s`, `12/min`: in the unit that gives a number of at least 1. */
export function rate(perSecond: number): string {
  if (perSecond >= 9.95) return `${count(Math.round(perSecond))}/s`;
  if (perSecond >= 1 || perSecond <= 0) return `${oneDecimal(perSecond)}/s`;
  return perSecond * 60 >= 1 ? `${oneDecimal(perSecond * 60)}/min` : `${oneDecimal(perSecond * 3_600)}/h`;
}

function oneDecimal(n: number): string {
  return n.toFixed(1).replace(/\.0$/, '');
}

/** `6–7 min left`: a range, because the last minutes say little about the next ones. */
export function timeLeft(seconds: number): string {
  if (seconds < 10) return 'a few seconds left';
  const [, step, size, unit] = steps.find(([below]) => seconds < below)!;
  const least = Math.floor(seconds / size / step) * step;
  return `${least}–${least + step} ${unit} left`;
}

/** Below so many seconds: in steps of so many of a unit of so many seconds. */
const steps = [
  [60, 10, 1, 's'],
  [1_200, 1, 60, 'min'],
  [7_200, 10, 60, 'min'],
  [172_800, 1, 3_600, 'h'],
  [Number.POSITIVE_INFINITY, 1, 86_400, 'd'],
] as const;

/** `38.0 %`. Never 100 % before the last one. */
export function percent(part: number, whole: number): string {
  if (whole === 0 || part >= whole) return '100 %';
  return `${(Math.floor((part / whole) * 1_000) / 10).toFixed(1)} %`;
}

const soonMs = 120_000;
const todayMs = 43_200_000;

/** When something was or will be, by the clock of this machine: `15:00`, `15:00:41` near `now`, `22 Nov 15:00` far from it. Times are ms since 1970. */
export function timeOfDay(ms: number, now: number): string {
  const at = new Date(ms);
  const away = Math.abs(ms - now);
  const time = at.toTimeString().slice(0, away < soonMs ? 8 : 5);
  return away < todayMs ? time : `${at.getDate()} ${at.toLocaleString('en-US', { month: 'short' })} ${time}`;
}
