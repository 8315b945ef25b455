/**
 * One way of getting a token, asked again for each new one. `issue` never throws for what the outside does; it is not called again
 * before it has ended. Aborting ends it early where that loses nothing.
 */
export type Issuer = {
  /** For people: where tokens come from. */
  source: string;
  issue(closing: AbortSignal): Promise<IssueEnd>;
};

/** How one request for a token ended. Reasons are for people and hold no secret. */
export type IssueEnd =
  /** `lifeMs` is null where nothing usable was said about it. */
  | { kind: 'issued'; header: string; lifeMs: number | null }
  /** Asking again would end the same: somebody has to change something. */
  | { kind: 'refused'; reason: string }
  /** Perhaps later; `askedMs` is the wait that was asked for. */
  | { kind: 'unavailable'; reason: string; askedMs: number | null };

export function refused(reason: string): IssueEnd {
  return { kind: 'refused', reason };
}

export function unavailable(reason: string, askedMs: number | null = null): IssueEnd {
  return { kind: 'unavailable', reason, askedMs };
}
