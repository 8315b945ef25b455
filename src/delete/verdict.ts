import type { SentOutcome } from '../ledger/outcome.ts';
import type { HaltCode } from '../ledger/run.ts';
import type { Answer } from './answer.ts';

/** What one answer means for its id. */
export type Verdict =
  /** The id has its outcome. */
  | { kind: 'settle'; outcome: SentOutcome }
  /** Try again; this used an attempt. `ambiguous`: the request may have been executed. */
  | { kind: 'retry'; ambiguous: boolean }
  /** Try again when the server wants us to; no attempt was used. */
  | { kind: 'wait' }
  /** The token was refused: get another, then try again; no attempt was used. */
  | { kind: 'credentials' }
  /** The target could not be reached; no attempt was used. */
  | { kind: 'unreachable' }
  /** The whole run must stop; no attempt was used. */
  | { kind: 'halt'; halt: HaltCode };

type Rule = { statuses: string; matches: (status: number) => boolean; verdict: Verdict | 'gone'; means: string };

const is =
  (...list: number[]) =>
  (status: number) =>
    list.includes(status);
const within = (low: number, high: number) => (status: number) => status >= low && status <= high;
const failed: Verdict = { kind: 'settle', outcome: 'failed' };

/** The first rule that matches a status decides. Printed by `expunge check --verdicts`. */
export const verdictTable: readonly Rule[] = [
  { statuses: '204', matches: is(204), verdict: { kind: 'settle', outcome: 'deleted' }, means: 'deleted' },
  {
    statuses: '200-299',
    matches: within(200, 299),
    verdict: failed,
    means: 'failed: never a success; the third halts the run',
  },
  {
    statuses: '300-399',
    matches: within(300, 399),
    verdict: failed,
    means: 'failed: never followed; the third halts the run',
  },
  {
    statuses: '401',
    matches: is(401),
    verdict: { kind: 'credentials' },
    means: 'halts the run unless the token file holds a new token',
  },
  {
    statuses: '404, 410',
    matches: is(404, 410),
    verdict: 'gone',
    means: 'absent, or gone_unconfirmed after a request that may have been executed',
  },
  {
    statuses: '408',
    matches: is(408),
    verdict: { kind: 'retry', ambiguous: true },
    means: 'retried; may have been executed',
  },
  {
    statuses: '409, 421, 423, 425',
    matches: is(409, 421, 423, 425),
    verdict: { kind: 'retry', ambiguous: false },
    means: 'retried; failed at the end',
  },
  { statuses: '429', matches: is(429), verdict: { kind: 'wait' }, means: 'waits as the server asks; not an attempt' },
  { statuses: '400-499', matches: within(400, 499), verdict: failed, means: 'failed' },
  { statuses: '501, 505', matches: is(501, 505), verdict: failed, means: 'failed' },
  {
    statuses: '500-999',
    matches: within(500, 999),
    verdict: { kind: 'retry', ambiguous: true },
    means: 'retried; may have been executed',
  },
];

/** Codes of a connection that can't work until somebody changes something: a wrong name, a certificate, no TLS. */
const configurationErrors =
  /^(ENOTFOUND|CERT_|ERR_TLS_|ERR_SSL_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_|HOSTNAME_MISMATCH|UND_ERR_INVALID_ARG|UND_ERR_PRX_TLS)/;

/** Pure. `doubtful`: an earlier request of this run for the id may have been executed. */
export function verdictOf(answer: Answer, doubtful: boolean): Verdict {
  if (answer.kind === 'maybe-sent') return { kind: 'retry', ambiguous: true };
  if (answer.kind === 'not-sent') {
    return configurationErrors.test(answer.why)
      ? { kind: 'halt', halt: 'target_configuration' }
      : { kind: 'unreachable' };
  }
  const rule = verdictTable.find(({ matches }) => matches(answer.status));
  if (rule?.verdict === 'gone') return { kind: 'settle', outcome: doubtful ? 'gone_unconfirmed' : 'absent' };
  const verdict = rule?.verdict ?? failed;
  // Refused now, but an earlier request may have deleted it: nobody can say that the object still exists.
  return verdict === failed && doubtful ? { kind: 'settle', outcome: 'unknown' } : verdict;
}
