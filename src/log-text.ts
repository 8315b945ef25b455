import { visible } from './model/visible.ts';

/** The form of the log; `auto`: lines for people on a terminal, JSON elsewhere. */
export type LogFormat = (typeof logFormats)[number];

export const logFormats = ['auto', 'text', 'json'] as const;

/** A line of the log in the form for people: time, level if it is not info, message, reason, and the other facts as `key value`. */
export function logText(line: string): string {
  const { level, time, pid: _, msg, reason, ...facts } = JSON.parse(line) as Record<string, unknown>;
  const at = new Date(String(time)).toTimeString().slice(0, 8);
  const words = [at, ...(level === 'info' ? [] : [level]), reason === undefined ? msg : `${msg}: ${textOf(reason)}`];
  const known = Object.entries(facts).filter(([, value]) => value !== null && value !== '');
  return visible([words.join(' '), ...known.map(([name, value]) => `${name} ${textOf(value)}`)].join(' · '));
}

function textOf(value: unknown): string {
  if (typeof value !== 'object' || value === null) return String(value);
  const { message } = value as { message?: unknown };
  return typeof message === 'string' ? message : JSON.stringify(value);
}
