import { toSingular } from './singular.ts';

// Numbers as people read them, on a terminal and on pages. All functions are pure.

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

/** The largest first, in seconds. */
export const units = [
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

/** A share: `38.0 %`. Rounded down, so that 100 % means all. */
export function percent(part: number, whole: number): string {
  if (whole === 0 || part >= whole) return '100 %';
  return `${(Math.floor((part / whole) * 1_000) / 10).toFixed(1)} %`;
}
