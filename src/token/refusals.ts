// Decides when a token is replaced, and when to give up. All functions are pure, in ms; `random` is from 0 to 1.

/** The assumed life of a token without `expires_in`, in ms. */
const assumedLifeMs = 300_000;
/** The longest life that is trusted, in ms: one request per day costs nothing. */
const maxLifeMs = 86_400_000;
/** The shortest time between two requests for a token, in ms, unless the API refuses one. */
export const minWaitMs = 1_000;

const refreshAt = 0.8;
const spread = 0.1;

/** The life in ms by `expires_in` (RFC 6749 §5.1: seconds), which may be a string of digits; null if it is missing or invalid. */
export function parseLifeMs(expiresIn: unknown): number | null {
  const isDigits = typeof expiresIn === 'string' && /^\d{1,15}(\.\d+)?$/.test(expiresIn.trim());
  const seconds = isDigits ? Number(expiresIn) : expiresIn;
  if (typeof seconds !== 'number' || !(seconds > 0)) return null;
  return Math.min(seconds * 1_000, maxLifeMs);
}

/** The time after its issue at which a token is replaced: at 80 % of its life, with a jitter of 10 % so that processes do not request together. */
export function refreshAfterMs(lifeMs: number, random: number): number {
  return Math.max(minWaitMs, lifeMs * refreshAt * (1 - spread + 2 * spread * random));
}

const backoffBaseMs = 500;
const backoffCapMs = 30_000;
const maxAskedMs = 3_600_000;

/**
 * The wait before the next request after this many failures in a row: a second plus full jitter, up to 30 s. A wait that the server asks for is kept,
 * without jitter, up to an hour.
 */
export function retryDelayMs(failures: number, askedMs: number | null, random: number): number {
  if (askedMs !== null) return Math.min(maxAskedMs, Math.max(minWaitMs, askedMs));
  return minWaitMs + random * Math.min(backoffCapMs - minWaitMs, backoffBaseMs * 2 ** failures);
}

/** The history of earlier tokens that decides about the next one. */
export type RefusalHistory = {
  /** The number of tokens in a row that the API refused within 60 s of their issue and with more than half of their life to come. */
  early: number;
  /** The number of tokens in a row that the API refused within 60 s of their issue. */
  young: number;
  /** The assumed life of a token without `expires_in`, in ms. */
  lifeMs: number;
};

export const noRefusals: RefusalHistory = { early: 0, young: 0, lifeMs: assumedLifeMs };

/** A refused token: its age, its known or assumed life, and whether a newer token was requested when it was refused. */
export type RefusedToken = { ageMs: number; lifeMs: number; isBeingReplaced: boolean };

const youngMs = 60_000;
const maxEarly = 2;
const maxYoung = 10;
const growthFactor = 1.5;

/**
 * The history after one more refusal.
 *
 * There are four reasons for refusing a token: it has expired, it was revoked once, it is not meant for the API, or the authorization server keeps
 * one live token per client and another process requested a newer one. Only the last two repeat, and then each new token is refused early. A refusal
 * while a newer token is requested is expected and does not count. For tokens without `expires_in` the life is learned: the next token is replaced
 * before it is as old as this one.
 */
export function afterRefusal({ early, young, lifeMs: learnedMs }: RefusalHistory, token: RefusedToken): RefusalHistory {
  const { ageMs, isBeingReplaced } = token;
  const lifeMs = ageMs < token.lifeMs ? Math.max(minWaitMs, ageMs) : learnedMs;
  if (isBeingReplaced) return { early, young, lifeMs };
  if (ageMs >= youngMs) return { early: 0, young: 0, lifeMs };
  return { early: ageMs < token.lifeMs / 2 ? early + 1 : 0, young: young + 1, lifeMs };
}

/** The history after a token that was replaced without a refusal. */
export function afterReplacement({ lifeMs }: RefusalHistory): RefusalHistory {
  return { early: 0, young: 0, lifeMs: Math.min(assumedLifeMs, lifeMs * growthFactor) };
}

/** The history after a token that refusals had put in doubt got through again, which makes those refusals meaningless. */
export function afterRecovery({ lifeMs }: RefusalHistory): RefusalHistory {
  return { early: 0, young: 0, lifeMs };
}

/**
 * Whether more requests are pointless: two tokens in a row were refused early. Two processes that revoke each other's tokens may do so more slowly if
 * the life is unknown; ten young tokens in a row also end that.
 */
export function shouldGiveUp({ early, young }: RefusalHistory): boolean {
  return early >= maxEarly || young >= maxYoung;
}

/** Whether even the held token is not worth a wait: twice as many tokens were refused early, or young. */
export function isHopeless({ early, young }: RefusalHistory): boolean {
  return early >= 2 * maxEarly || young >= 2 * maxYoung;
}

/** Describes why giving up is right. `hadWorked`: the API accepted the last token before it refused it. `said`: its answer in words, or ''. */
export function describeRefusals(hadWorked: boolean, said: string): string {
  const oneLive =
    'this authorization server seems to keep only one live token per client: another process took one; ' +
    'give each process its own client, or share one token with --token-file';
  const saying = said && ` (${said})`;
  if (hadWorked)
    return `the API refused one fresh token after the other${saying}, although they had worked: ${oneLive}`;
  const advice = 'it may not be meant for this API (see EXPUNGE_SCOPE and EXPUNGE_TOKEN_AUDIENCE)';
  return `the API refused a fresh token again and again${saying}: ${advice}, or ${oneLive}`;
}
