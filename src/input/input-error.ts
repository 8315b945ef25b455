import { ExpungeError } from '../errors.ts';

/** An input that cannot be used: names the file, and the line where there is one. Nothing was sent. */
export function inputError(
  name: string,
  line: number | null,
  message: string,
  next: string | null = null,
): ExpungeError {
  const place = line === null ? name : `${name}:${line}`;
  return new ExpungeError('USAGE', `${place}: ${message}`, { next });
}

/** Text from a file as it can be shown: quoted, control characters escaped, bounded. */
export function shown(text: string): string {
  return JSON.stringify(text.length > 60 ? `${text.slice(0, 60)}…` : text);
}
