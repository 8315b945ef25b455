export type TokenRefusal = 'again' | 'elsewhere' | { halt: string };

/** The bearer token, from any source. Its value is in memory only: never in arguments, jobs, logs, errors or reports. */
export type Token = {
  /** The whole header `Bearer …` for the next request; null: none may be sent now. Called for each request, and changes nothing. */
  authorization(): string | null;
  /** The latest header, also while it is in doubt; null: there is none. What other processes of a run are lent. */
  readonly latest: string | null;
  /** A request with this header is being sent. Called for each request. */
  sent(authorization: string): void;
  /**
   * The API answered 401 to this header, and `said` so, or ''. 'again': the id may be sent again, as soon as `authorization` has a header.
   * 'elsewhere': other requests with it get through, so one server is in trouble: the id may be sent again a little later. Otherwise the
   * reason why the run must halt.
   */
  refused(authorization: string, said: string): TokenRefusal;
  /** A request with this header got through to the API: it works. Called for each such answer. */
  accepted(authorization: string): void;
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
