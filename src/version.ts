import { readFileSync } from 'node:fs';

/** The version of this package. */
export function readVersion(): string {
  return JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')).version;
}

/** The `User-Agent` of requests. Some APIs refuse requests without one. */
export const userAgent = `expunge/${readVersion()}`;
