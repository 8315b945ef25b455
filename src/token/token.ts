export type TokenRefusal = 'again' | 'elsewhere' | { halt: string };

/** The bearer token, from any source. Its value is in memory only: never in arguments, jobs, logs, errors or reports. */
export type Token = {
  /** Returns the whole header `Bearer …` for the next request; null: sending is not allowed now. Called for each request, and changes nothing. */
  authorization(): string | null;
  /** Notes that a request with this header is being sent. Called for each request. */
  sent(authorization: string): void;
  /**
   * Notes that the API refused this header; `said`: its answer in words, or ''. 'again': the id may be sent again, as soon as `authorization` has a
   * header. 'elsewhere': other requests with it get through, so one server is in trouble, and the id may be sent again a little later. Otherwise
   * returns the reason why the run must halt.
   */
  refused(authorization: string, said: string): TokenRefusal;
  /** Notes that a request with this header, which was sent at `sentAtMs` by its clock, got through to the API. Called for each such answer. */
  accepted(authorization: string, sentAtMs: number): void;
  /** When the last request with this header that got through was sent, in ms by its clock; -∞: none did, or the header is no longer in use. */
  workedAtMs(authorization: string): number;
  /** Why there is no token now, or ''. */
  readonly waiting: string;
  /** The number of tokens that replaced another one. */
  readonly refreshes: number;
  /** The number of refreshes that failed. */
  readonly failedRefreshes: number;
  /** The life of the present token from its issue, in ms; null if unknown. */
  readonly lifeMs: number | null;
  /** The source in words: 'EXPUNGE_TOKEN', the file's name, 'https://auth.example.com/token (client abc)', 'the command …'. */
  readonly source: string;
  /**
   * Gets the first token. Throws CREDENTIALS for an error that cannot pass; other errors are retried in the background. After a refusal for good,
   * calling it again makes another attempt.
   */
  start(): Promise<void>;
  /** Sets the only listener: `changed` is called when the value of `authorization` changes. */
  onChange(changed: () => void): void;
  /** Sets the only listener: `failed` is called with the reason when the credentials are refused for good after `start`, so that runs must halt. */
  onRefused(failed: (reason: string) => void): void;
  /** Ends background requests; a refresh token that is being replaced is stored before this resolves. Doing it twice is harmless. */
  close(): Promise<void>;
};

/**
 * A source of tokens, called for each new one. `issue` never throws for errors of the source, and is not called again before it has ended. Aborting
 * ends it early if that loses nothing.
 */
export type Issuer = {
  /** The source of the tokens, in words. */
  source: string;
  issue(closing: AbortSignal): Promise<IssueResult>;
};

/** The result of a request for a token. Reasons are for people and hold no secret. */
export type IssueResult =
  /** `lifeMs` is null if the source does not say. */
  | { kind: 'issued'; header: string; lifeMs: number | null }
  /** Another request would end the same way: an operator must change something. */
  | { kind: 'refused'; reason: string }
  /** A later request may succeed; `askedMs` is the wait that the server asks for. */
  | { kind: 'unavailable'; reason: string; askedMs: number | null };

export function refused(reason: string): IssueResult {
  return { kind: 'refused', reason };
}

export function unavailable(reason: string, askedMs: number | null = null): IssueResult {
  return { kind: 'unavailable', reason, askedMs };
}
