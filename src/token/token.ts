/** The bearer token, from any source. Its value is in memory only: never in arguments, jobs, logs, errors or reports. */
export type Token = {
  /** The whole header `Bearer …`, or null while no token is usable: nothing is sent meanwhile. Called for each request. */
  authorization(): string | null;
  /**
   * The API answered 401 to this header. 'again': the id may be sent again, with a newer token as soon as `authorization` has one;
   * otherwise the reason why the run must halt.
   */
  refused(authorization: string): 'again' | { halt: string };
  /** The API answered with another status than 401: the present token works. Called for each answer. */
  accepted(): void;
  /** Why there is no token now, or ''. */
  readonly waiting: string;
  /** How many tokens replaced another one. */
  readonly refreshes: number;
  /** How many refreshes failed. */
  readonly failedRefreshes: number;
  /** The life of the present token from its issue, in ms; null if it is unknown. */
  readonly lifeMs: number | null;
  /** For people: 'EXPUNGE_TOKEN', the file's name, 'https://auth.example.com/token (client abc)', 'the command …'. */
  readonly source: string;
  /**
   * Gets the first token. Throws CREDENTIALS for an error that cannot pass; others are retried in the background. After a refusal for good,
   * calling it again tries once more.
   */
  start(): Promise<void>;
  /** `changed` is called when the value of `authorization` changes. One listener. */
  onChange(changed: () => void): void;
  /** `failed` is called with the reason when the credentials are refused for good after `start`: runs must halt. One listener. */
  onRefused(failed: (reason: string) => void): void;
  /** Ends background requests; a refresh token that is being replaced is stored before this resolves. Doing it twice is harmless. */
  close(): Promise<void>;
};

/**
 * A source of tokens, called for each new one. `issue` never throws for errors of the source, and is not called again before it has
 * ended. Aborting ends it early if that loses nothing.
 */
export type Issuer = {
  /** For people: where tokens come from. */
  source: string;
  issue(closing: AbortSignal): Promise<IssueResult>;
};

/** How a request for a token ended. Reasons are for people and hold no secret. */
export type IssueResult =
  /** `lifeMs` is null if the source does not say. */
  | { kind: 'issued'; header: string; lifeMs: number | null }
  /** Another request would end the same: an operator must change something. */
  | { kind: 'refused'; reason: string }
  /** A later request may succeed; `askedMs` is the wait that the server asks for. */
  | { kind: 'unavailable'; reason: string; askedMs: number | null };

export function refused(reason: string): IssueResult {
  return { kind: 'refused', reason };
}

export function unavailable(reason: string, askedMs: number | null = null): IssueResult {
  return { kind: 'unavailable', reason, askedMs };
}
