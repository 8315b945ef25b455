import type { HeaderFields } from '../http/retry-after.ts';
import type { HaltCode } from '../ledger/run.ts';
import { isAmbiguous, parseOnStatus, type StatusAction, type StatusOverride } from '../model/on-status.ts';
import type { CodeWord, SentOutcome } from '../model/outcome.ts';
import { describeConnectionError } from '../system-errors.ts';

/** What one answer means for its id. `ambiguous`: the request may have been executed, which the id keeps in mind. */
export type Verdict =
  /** The id has its outcome. */
  | { kind: 'settle'; outcome: SentOutcome }
  /** Try again; this used an attempt. */
  | { kind: 'retry'; ambiguous: boolean }
  /** Try again when the server wants us to; no attempt was used. */
  | { kind: 'wait'; ambiguous: boolean }
  /** The token was refused: get another, then try again; no attempt was used. */
  | { kind: 'credentials' }
  /** The target could not be reached; no attempt was used. */
  | { kind: 'unreachable' }
  /** The whole run must stop; no attempt was used. */
  | { kind: 'halt'; halt: HaltCode; reason: string; ambiguous: boolean };

/** What a rule of the table says. `gone` and `halt` become verdicts when the answer is known. */
type Meaning = Exclude<Verdict, { kind: 'halt' }> | 'gone' | 'halt';

/** `answers`: statuses and ranges of them, `ranges` the same as numbers. `treated`: it stands there because of `--on-status`. */
type Rule = {
  answers: string;
  ranges: readonly (readonly [from: number, to: number])[];
  meaning: Meaning;
  means: string;
  overridden: boolean;
};

/** The first rule that matches a status decides. */
export type VerdictTable = readonly Rule[];

const failed: Meaning = { kind: 'settle', outcome: 'failed' };

function rule(answers: string, meaning: Meaning, means: string, overridden = false): Rule {
  return { answers, ranges: rangesIn(answers), meaning, means, overridden };
}

function rangesIn(answers: string): [number, number][] {
  return answers.split(', ').map((answer) => {
    const [from = 0, to = from] = answer.split('-').map(Number);
    return [from, to];
  });
}

/** What each status means where `--on-status` says nothing. */
export const verdictTable: VerdictTable = [
  rule('204', { kind: 'settle', outcome: 'deleted' }, 'deleted'),
  rule('200-299', { kind: 'settle', outcome: 'unknown' }, 'unknown: never a success; may have been executed'),
  rule('300-399', failed, 'failed: never followed'),
  rule(
    '401',
    { kind: 'credentials' },
    'asks for another token once and waits for it, or halts the run; not an attempt',
  ),
  rule('402, 407, 451', 'halt', 'halts the run at the first'),
  rule('403', failed, 'failed; halts the run at the first with insufficient_scope'),
  rule('404, 410', 'gone', 'absent, or gone_unconfirmed after a request that may have been executed'),
  rule('408', { kind: 'retry', ambiguous: true }, 'retried; may have been executed'),
  rule('409, 421, 423, 425', { kind: 'retry', ambiguous: false }, 'retried; failed at the end'),
  rule('429', { kind: 'wait', ambiguous: false }, 'waits as the server asks; not an attempt'),
  rule('400-499', failed, 'failed'),
  rule('501, 505', failed, 'failed'),
  rule('500-999', { kind: 'retry', ambiguous: true }, 'retried; may have been executed'),
];

/** The table of a run: its `--on-status` before ours. Throws an Error for a text that `readTreat` refuses. */
export function verdictsWith(onStatus: string): VerdictTable {
  const overrides = parseOnStatus(onStatus);
  if (overrides.length === 0) return verdictTable;
  const overridden = overrides.map(ruleOf);
  const given = overridden.map(({ answers }) => answers);
  return [...overridden, ...verdictTable.flatMap((ours) => without(given, ours))];
}

function ruleOf({ status, word }: StatusOverride): Rule {
  const { meaning, means } = treatedAs[word](isAmbiguous(status));
  return rule(String(status), meaning, means, true);
}

const treatedAs: Record<StatusAction, (ambiguous: boolean) => { meaning: Meaning; means: string }> = {
  failed: () => ({ meaning: failed, means: 'failed' }),
  absent: () => ({ meaning: 'gone', means: 'absent, or gone_unconfirmed after a request that may have been executed' }),
  retry: (ambiguous) => ({
    meaning: { kind: 'retry', ambiguous },
    means: ambiguous ? 'retried; may have been executed' : 'retried; failed at the end',
  }),
  wait: (ambiguous) => ({ meaning: { kind: 'wait', ambiguous }, means: 'waits as the server asks; not an attempt' }),
  halt: () => ({ meaning: 'halt', means: 'halts the run at the first' }),
};

/** What is left of one of our rules beside the statuses that were given; ranges stay, since the rules before them decide. */
function without(given: readonly string[], { answers, meaning, means }: Rule): Rule[] {
  const left = answers.split(', ').filter((answer) => !given.includes(answer));
  return left.length === 0 ? [] : [rule(left.join(', '), meaning, means)];
}

/** The statuses that a run takes for "not now": what is refused with one of them is refused by the target, not by the id. */
export function waitStatuses(table: VerdictTable): ReadonlySet<number> {
  return new Set(
    table.filter(({ meaning }) => isWait(meaning)).flatMap(({ ranges }) => ranges.map(([status]) => status)),
  );
}

function isWait(meaning: Meaning): boolean {
  return typeof meaning === 'object' && meaning.kind === 'wait';
}

/** Codes of a connection that can't work until somebody changes something: a wrong name, a certificate, no TLS. */
const configurationErrors =
  /^(ENOTFOUND|CERT_|ERR_TLS_|ERR_SSL_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_|HOSTNAME_MISMATCH|UND_ERR_INVALID_ARG|UND_ERR_PRX_TLS)/;

/** Pure. `doubtful`: an earlier request of this run for the id may have been executed. */
export function verdictOf(answer: Answer, doubtful: boolean, table: VerdictTable = verdictTable): Verdict {
  if (answer.kind === 'maybe-sent') return { kind: 'retry', ambiguous: true };
  if (answer.kind === 'not-sent') return configurationErrors.test(answer.why) ? misconfigured(answer.why) : unreachable;
  const { status, headers } = answer;
  const found = table.find(({ ranges }) => ranges.some(([from, to]) => status >= from && status <= to));
  if (status === 403 && !found?.overridden && lacksScope(headers)) return withoutScope;
  const meaning = found?.meaning ?? failed;
  if (meaning === 'gone') return { kind: 'settle', outcome: doubtful ? 'gone_unconfirmed' : 'absent' };
  if (meaning === 'halt') return haltedBy(status);
  // Refused now, but an earlier request may have deleted it: nobody can say that the object still exists.
  return meaning === failed && doubtful ? { kind: 'settle', outcome: 'unknown' } : meaning;
}

const unreachable: Verdict = { kind: 'unreachable' };

function misconfigured(why: string): Verdict {
  const reason = `the API cannot be reached: ${describeConnectionError(why)}`;
  return { kind: 'halt', halt: 'target_configuration', reason, ambiguous: false };
}

function haltedBy(status: number): Verdict {
  const reason = `the API answered ${status}, which stops a run at the first`;
  return { kind: 'halt', halt: 'halting_status', reason, ambiguous: isAmbiguous(status) };
}

const withoutScope: Verdict = {
  kind: 'halt',
  halt: 'forbidden',
  reason: 'the API answered 403 insufficient_scope: the token was not given the scope to delete these',
  ambiguous: false,
};

/** RFC 6750, section 3.1: this token can never do it, whatever the id. */
function lacksScope(headers: HeaderFields): boolean {
  return /\berror\s*=\s*"?insufficient_scope\b/i.test(String(headers['www-authenticate'] ?? ''));
}

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
