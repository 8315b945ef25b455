import type { CodeWord } from '../ledger/code.ts';

/** What came of one request. Whether it may have been executed is told by its kind alone (see send-delete.ts). */
export type Answer =
  /** The server answered. `body` holds at most 2 kB; `authorization` is the header that was sent. */
  | { kind: 'status'; status: number; headers: AnswerHeaders; body: string; authorization: string }
  /** It was written and no status came: it may have been executed. */
  | { kind: 'maybe-sent'; code: CodeWord; why: string }
  /** It was never written. `why` is the system's code, for example ECONNREFUSED. */
  | { kind: 'not-sent'; why: string };

export type AnswerHeaders = Readonly<Record<string, string | string[] | undefined>>;

/** The one success, shared by all requests so that the hot path makes no objects. */
export const noContent: Answer = { kind: 'status', status: 204, headers: {}, body: '', authorization: '' };
