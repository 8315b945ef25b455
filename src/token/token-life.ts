// When a token is replaced. All pure, in ms; `random` is from 0 to 1.

/** What a token that says nothing of its life is taken to live. */
export const assumedLifeMs = 300_000;
/** No token is trusted for longer, whatever it says: asking once a day costs nothing. */
const longestLifeMs = 86_400_000;
/** Tokens are asked for no more often than this, unless the API refuses one. */
export const leastWaitMs = 1_000;

const refreshAt = 0.8;
const spread = 0.1;

/** The life of `expires_in` (RFC 6749 §5.1: seconds), also where it is a string of digits; null if it is missing or makes no sense. */
export function lifeMsOf(expiresIn: unknown): number | null {
  const isDigits = typeof expiresIn === 'string' && /^\d{1,15}(\.\d+)?$/.test(expiresIn.trim());
  const seconds = isDigits ? Number(expiresIn) : expiresIn;
  if (typeof seconds !== 'number' || !(seconds > 0)) return null;
  return Math.min(seconds * 1_000, longestLifeMs);
}

/** How long after its issue a token is replaced: at 80 % of its life, earlier or later by a tenth so that processes don't ask together. */
export function refreshAfterMs(lifeMs: number, random: number): number {
  return Math.max(leastWaitMs, lifeMs * refreshAt * (1 - spread + 2 * spread * random));
}

const backoffBaseMs = 500;
const backoffCapMs = 30_000;
const longestAskedMs = 3_600_000;

/**
 * The wait before asking again after so many failures in a row: a second, and from there full jitter up to 30 s. A wait that the
 * server named is kept, without jitter, for up to an hour.
 */
export function askAgainAfterMs(failures: number, askedMs: number | null, random: number): number {
  if (askedMs !== null) return Math.min(longestAskedMs, Math.max(leastWaitMs, askedMs));
  return leastWaitMs + random * Math.min(backoffCapMs - leastWaitMs, backoffBaseMs * 2 ** failures);
}
