import type { HeaderFields } from '../http/retry-after.ts';
import type { HaltCode } from '../ledger/run.ts';
import { isAmbiguous, parseOnStatus, type StatusAction, type StatusOverride } from '../model/on-status.ts';
import type { CodeWord, SentOutcome } from '../model/outcome.ts';
import { describeConnectionError } from '../system-errors.ts';

/** What one answer means for its id. `ambiguous`: the request may have been executed, which is recorded with the id. */
export type Verdict =
  /** The id has its outcome. */
  | { kind: 'settle'; outcome: SentOutcome }
  /** Retry; this counts as an attempt. */
  | { kind: 'retry'; ambiguous: boolean }
  /** Retry when the server allows it; this counts as no attempt. */
  | { kind: 'wait'; ambiguous: boolean }
  /** The token was rejected: get another one, then retry; this counts as no attempt. */
  | { kind: 'credentials' }
  /** The target could not be reached; this counts as no attempt. */
  | { kind: 'unreachable' }
  /** The whole run halts; this counts as no attempt. */
  | { kind: 'halt'; halt: HaltCode; reason: string; ambiguous: boolean };

/** What a rule of the table says. `gone` and `halt` become verdicts together with an answer. */
type Meaning = Exclude<Verdict, { kind: 'halt' }> | 'gone' | 'halt';

/** `answers`: statuses and ranges of them; `ranges`: the same as numbers; `means`: for people; `overridden`: it comes from `--on-status`. */
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

/** What each status means unless `--on-status` says otherwise. */
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

/** The table of a run: the rules of its `--on-status`, then the default ones. Throws an Error for a text that `parseOnStatus` rejects. */
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

/** A default rule without the given statuses; its ranges stay, because the rules before it decide. */
function without(given: readonly string[], { answers, meaning, means }: Rule): Rule[] {
  const left = answers.split(', ').filter((answer) => !given.includes(answer));
  return left.length === 0 ? [] : [rule(left.join(', '), meaning, means)];
}

/** The statuses that mean "not now" in a run: with one of them the target throttles, whatever the id. */
export function waitStatuses(table: VerdictTable): ReadonlySet<number> {
  return new Set(
    table.filter(({ meaning }) => isWait(meaning)).flatMap(({ ranges }) => ranges.map(([status]) => status)),
  );
}

function isWait(meaning: Meaning): boolean {
  return typeof meaning === 'object' && meaning.kind === 'wait';
}

/** Codes of connection errors that last until the configuration is changed: a wrong name, a certificate, no TLS. */
const configurationErrors =
  /^(ENOTFOUND|CERT_|ERR_TLS_|ERR_SSL_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_|HOSTNAME_MISMATCH|UND_ERR_INVALID_ARG|UND_ERR_PRX_TLS)/;

/** What an answer means. Pure. `doubtful`: an earlier request of this run for the id may have been executed. */
export function verdictOf(answer: Answer, doubtful: boolean, table: VerdictTable = verdictTable): Verdict {
  if (answer.kind === 'maybe-sent') return { kind: 'retry', ambiguous: true };
  if (answer.kind === 'not-sent') return configurationErrors.test(answer.why) ? misconfigured(answer.why) : unreachable;
  const { status, headers } = answer;
  const found = table.find(({ ranges }) => ranges.some(([from, to]) => status >= from && status <= to));
  if (status === 403 && !found?.overridden && lacksScope(headers)) return withoutScope;
  const meaning = found?.meaning ?? failed;
  if (meaning === 'gone') return { kind: 'settle', outcome: doubtful ? 'gone_unconfirmed' : 'absent' };
  if (meaning === 'halt') return haltedBy(status);
  // This request failed, but an earlier one may have deleted the object: whether it still exists is unknown.
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

/** RFC 6750, section 3.1: the token has no right to delete, whatever the id. */
function lacksScope(headers: HeaderFields): boolean {
  return /\berror\s*=\s*"?insufficient_scope\b/i.test(String(headers['www-authenticate'] ?? ''));
}

/** The result of one request. Its kind alone says whether it may have been executed; see send-delete.ts. */
export type Answer =
  /** The server answered. `body` holds at most 2 kB; `authorization` is the header that was sent. */
  | { kind: 'status'; status: number; headers: HeaderFields; body: string; authorization: string }
  /** It was written and no status came: it may have been executed. */
  | { kind: 'maybe-sent'; code: CodeWord; why: string }
  /** It was never written. `why` is the system's code, for example ECONNREFUSED. */
  | { kind: 'not-sent'; why: string };

/** The one success, shared by all requests to save allocations; a 204 with rate headers is an object of its own. */
export const noContent: Answer = { kind: 'status', status: 204, headers: {}, body: '', authorization: '' };
