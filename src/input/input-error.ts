import { ExpungeError } from '../errors.ts';
import type { Advice } from '../model/to-type.ts';
import { visible } from '../model/visible.ts';

/** A USAGE error for unusable input: it names the file, and the line if there is one. */
export function inputError(
  name: string,
  line: number | null,
  message: string,
  next: Advice | null = null,
): ExpungeError {
  const place = line === null ? visible(name) : `${visible(name)}:${line}`;
  return new ExpungeError('USAGE', `${place}: ${message}`, { next });
}

/** Quotes text from a file for a message: invisible and control characters are escaped, and long text is cut. */
export function shown(text: string): string {
  return `"${visible(text.length > 60 ? `${text.slice(0, 60)}…` : text).replaceAll('"', '\\"')}"`;
}
