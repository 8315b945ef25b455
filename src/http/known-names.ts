import dns from 'node:dns';
import type { LookupFunction } from 'node:net';

const found = new Set<string>();
const maxNames = 1_000;

/**
 * Looks up a host name. A name that this process has found before is no mistake in the configuration: if it is not found later, the name service fails.
 * The error then has the code of such a failure.
 */
export const lookUpName: LookupFunction = (name, options, done) => {
  dns.lookup(name, options, (error, ...addresses) => {
    if (error === null && found.size < maxNames) found.add(name);
    const isForgotten = error?.code === 'ENOTFOUND' && found.has(name);
    done(isForgotten ? Object.assign(error, { code: 'EAI_AGAIN' }) : error, ...addresses);
  });
};
