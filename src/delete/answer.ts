import type { CodeWord } from '../ledger/code.ts';
import type { HeaderFields } from '../limiter/header-fields.ts';

/** What came of one request. Whether it may have been executed is told by its kind alone (see send-delete.ts). */
export type Answer =
  /** The server answered. `body` holds at most 2 kB; `authorization` is the header that was sent. */
  | { kind: 'status'; status: number; headers: HeaderFields; body: string; authorization: string }
  /** It was written and no status came: it may have been executed. */
  | { kind: 'maybe-sent'; code: CodeWord; why: string }
  /** It was never written. `why` is the system's code, for example ECONNREFUSED. */
  | { kind: 'not-sent'; why: string };

/** The one success, shared by all requests so that the hot path makes no objects; only a 204 with advice on the rate comes by itself. */
export const noContent: Answer = { kind: 'status', status: 204, headers: {}, body: '', authorization: '' };
