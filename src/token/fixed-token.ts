import { bearerHeader } from './bearer.ts';
import type { Token } from './token.ts';

/** A token that never changes. Throws CREDENTIALS if it is none. */
export function fixedToken(token: string, source: string): Token {
  const header = bearerHeader(token, source);
  return {
    ...given,
    authorization: () => header,
    refused: () => ({ halt: `the API refused the token from ${source} (401)` }),
    source,
  };
}

/** What tokens that are simply there have in common: nothing to wait for, nothing to ask for. */
export const given = {
  waiting: '',
  accepted: () => {},
  refreshes: 0,
  failedRefreshes: 0,
  lifeMs: null,
  start: async () => {},
  onChange: () => {},
  onRefused: () => {},
  close: async () => {},
};
