// When a token is replaced. All pure, in ms; `random` is from 0 to 1.

/** What a token that says nothing of its life is taken to live. */
const assumedLifeMs = 300_000;
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
export function retryDelayMs(failures: number, askedMs: number | null, random: number): number {
  if (askedMs !== null) return Math.min(longestAskedMs, Math.max(leastWaitMs, askedMs));
  return leastWaitMs + random * Math.min(backoffCapMs - leastWaitMs, backoffBaseMs * 2 ** failures);
}

/** What became of the tokens so far, as far as it matters for the next one. */
export type RefusalHistory = {
  /** Tokens in a row that the API refused within 60 s of their issue and with more than half of their life to come. */
  early: number;
  /** Tokens in a row that the API refused within 60 s of their issue. */
  young: number;
  /** What a token that doesn't say so is taken to live. */
  lifeMs: number;
};

export const noRefusals: RefusalHistory = { early: 0, young: 0, lifeMs: assumedLifeMs };

/** A refused token: what it lives, as far as anybody knows, and whether a newer one was under way when it was refused. */
export type RefusedToken = { ageMs: number; lifeMs: number; isBeingReplaced: boolean };

const youngMs = 60_000;
const earlyAtMost = 2;
const youngAtMost = 10;
const growthFactor = 1.5;

/**
 * The past after one more refusal.
 *
 * A token may be refused because its life is over, because somebody revoked it once, because it is not what the API wants, or because the
 * authorization server keeps one live token per client and another process took a newer one. Only the last two go on and on, and then
 * each new token falls early, while tokens that merely live short are replaced at 80 % of their life: whatever is refused from then
 * on is refused because of that, and counts for nothing. Of tokens that don't say how long they live it is learned: the next one is
 * replaced before it is as old as this one.
 */
export function afterRefusal({ early, young, lifeMs: learnedMs }: RefusalHistory, token: RefusedToken): RefusalHistory {
  const { ageMs, isBeingReplaced } = token;
  const lifeMs = ageMs < token.lifeMs ? Math.max(leastWaitMs, ageMs) : learnedMs;
  if (isBeingReplaced) return { early, young, lifeMs };
  if (ageMs >= youngMs) return { early: 0, young: 0, lifeMs };
  return { early: ageMs < token.lifeMs / 2 ? early + 1 : 0, young: young + 1, lifeMs };
}

/** The past after a token that was replaced without anybody refusing it. */
export function afterReplacement({ lifeMs }: RefusalHistory): RefusalHistory {
  return { early: 0, young: 0, lifeMs: Math.min(assumedLifeMs, lifeMs * growthFactor) };
}

/**
 * Whether asking for more tokens is pointless: two in a row fell early. Two processes that revoke each other's tokens by turns
 * may do so more slowly where nobody knows how long tokens live; ten young ones in a row end that as well.
 */
export function shouldGiveUp({ early, young }: RefusalHistory): boolean {
  return early >= earlyAtMost || young >= youngAtMost;
}

/** Why it is, for people. `hadWorked`: the last token was answered before it was refused. */
export function describeRefusals(hadWorked: boolean): string {
  const oneLive =
    'this authorization server seems to keep only one live token per client: another process took one; ' +
    'give each process its own client, or share one token with --token-file';
  const what = 'the API refused one fresh token after the other (401)';
  if (hadWorked) return `${what}, although they had worked: ${oneLive}`;
  return `${what}: they may not be meant for this API (see --scope and --token-audience), or ${oneLive}`;
}
