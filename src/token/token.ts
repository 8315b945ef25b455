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
  /** How often asking for one was in vain. */
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
