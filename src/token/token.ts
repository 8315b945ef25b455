import { ExpungeError } from '../errors.ts';

/** The bearer token, wherever it comes from. Its value is in memory only: never in arguments, jobs, logs, errors or reports. */
export type Token = {
  /** The whole header `Bearer …`, or null while there is none that can be used: nothing leaves meanwhile. Called for each request. */
  authorization(): string | null;
  /**
   * The API answered 401 to this header. 'again': the id may be sent again, with a newer token as soon as `authorization` has one;
   * otherwise why the run must halt, in words.
   */
  refused(authorization: string): 'again' | { halt: string };
  /** The API answered something else than 401: the present token works. Called for each answer. */
  accepted(): void;
  /** Why there is no token at the moment, in words, or ''. */
  readonly waiting: string;
  /** How often another token took the place of one. */
  readonly refreshes: number;
  /** How many refreshes failed. */
  readonly failedRefreshes: number;
  /** How long the present one lives from its issue, in ms; null where nobody knows. */
  readonly lifeMs: number | null;
  /** For people: 'EXPUNGE_TOKEN', the file's name, 'https://auth.example.com/token (client abc)', 'the command …'. */
  readonly source: string;
  /**
   * Gets the first token. Throws CREDENTIALS where that never can work; what may pass is tried again in the background. After a refusal
   * for good, calling it again tries once more.
   */
  start(): Promise<void>;
  /** `changed` is called when `authorization` has a new answer. One listener. */
  onChange(changed: () => void): void;
  /** `failed` is called with the reason when the credentials turn out to be refused for good later on: runs must halt. One listener. */
  onRefused(failed: (reason: string) => void): void;
  /** Ends what it does in the background; a refresh token that is being replaced is stored before this resolves. */
  close(): Promise<void>;
};

/**
 * The header for a token. Throws CREDENTIALS, without showing it, for text that is no b64token (RFC 6750 §2.1): it may be a whole
 * file, or break the header in two.
 */
export function bearerHeader(text: string, source: string): string {
  const token = bareToken(text);
  if (isBearerToken(token)) return `Bearer ${token}`;
  const got = text === '' ? 'nothing' : 'other text';
  throw new ExpungeError('CREDENTIALS', `${source}: expected one bearer token, got ${got}`, { next: tokenFormat });
}

/** A token without the `Bearer ` before it: people copy the whole value of the header, and no token can hold a space. */
export function bareToken(text: string): string {
  return text.replace(/^Bearer +/i, '');
}

/** Whether this can stand behind `Bearer `. */
export function isBearerToken(text: string): boolean {
  return /^[A-Za-z0-9._~+/-]+=*$/.test(text);
}

/** What a token looks like, for whoever gave something else. */
export const tokenFormat =
  'a token consists of letters, digits and - . _ ~ + / with = at the end; its content is not shown here';

/**
 * One way of getting a token, asked again for each new one. `issue` never throws for what the outside does; it is not called again
 * before it has ended. Aborting ends it early where that loses nothing.
 */
export type Issuer = {
  /** For people: where tokens come from. */
  source: string;
  issue(closing: AbortSignal): Promise<IssueResult>;
};

/** How one request for a token ended. Reasons are for people and hold no secret. */
export type IssueResult =
  /** `lifeMs` is null where nothing usable was said about it. */
  | { kind: 'issued'; header: string; lifeMs: number | null }
  /** Asking again would end the same: somebody has to change something. */
  | { kind: 'refused'; reason: string }
  /** Perhaps later; `askedMs` is the wait that was asked for. */
  | { kind: 'unavailable'; reason: string; askedMs: number | null };

export function refused(reason: string): IssueResult {
  return { kind: 'refused', reason };
}

export function unavailable(reason: string, askedMs: number | null = null): IssueResult {
  return { kind: 'unavailable', reason, askedMs };
}
