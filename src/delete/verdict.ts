import type { HeaderFields } from '../http/retry-after.ts';
import type { HaltCode } from '../ledger/run.ts';
import { parseOnStatus, type StatusOverride } from '../model/on-status.ts';
import { type CodeWord, inDoubt, type SentOutcome } from '../model/outcome.ts';
import { anyResource, type Definition, definitionOf, type Resource } from '../model/resource.ts';
import {
  acceptedStatus,
  classifyStatus,
  describeMeaning,
  isAmbiguous,
  isWithin,
  type Meaning,
  parseStatusRanges,
  type StatusAction,
  type StatusClass,
  type StatusFacts,
  type StatusRange,
  statusClasses,
  statusFacts,
  statusRanges,
  successStatus,
} from '../model/status.ts';
import { describeConnectionError } from '../system-errors.ts';
import { namedBy, refusesToken } from './named-codes.ts';

/** The `why` of an answer whose headers are larger than expunge reads; a code of undici. */
export const headersTooLarge = 'UND_ERR_HEADERS_OVERFLOW';

/** The `why` of a 100 Continue, after which undici reads nothing; and of an answer in HTTP/2. The words are in system-errors.ts. */
export const unaskedContinue = 'UNASKED_CONTINUE';
export const onlyHttp2 = 'ONLY_HTTP2';

/** The meaning of one answer for its id. `ambiguous`: the request may have been executed, which is recorded with the id. */
export type Verdict =
  /** The id has its outcome. */
  | { kind: 'settle'; outcome: SentOutcome }
  /** Retry. Counts as an attempt. */
  | { kind: 'retry'; ambiguous: boolean }
  /** Retry when the server allows it. Does not count as an attempt. */
  | { kind: 'wait'; ambiguous: boolean }
  /** The token was rejected: get another one, then retry. Does not count as an attempt. */
  | { kind: 'credentials' }
  /** The target could not be reached. Does not count as an attempt. */
  | { kind: 'unreachable' }
  /** The whole run halts. Does not count as an attempt. */
  | { kind: 'halt'; halt: HaltCode; reason: string; ambiguous: boolean };

/** `answers`: statuses and ranges of them; `ranges`: the same as numbers; `name`: null for a rule of `--on-status`. */
type Rule = {
  name: StatusClass | null;
  answers: string;
  ranges: readonly StatusRange[];
  meaning: Meaning;
  ambiguous: boolean;
  means: string;
};

/** The first rule that matches a status decides. */
export type VerdictTable = readonly Rule[];

/** The meaning of each status unless `--on-status` gives another. */
export const verdictTable: VerdictTable = statusClasses.map((name) => {
  const { answers, meaning, isAmbiguous: ambiguous, means } = statusFacts[name];
  return makeRule(name, answers, meaning, ambiguous, means);
});

function makeRule(
  name: StatusClass | null,
  answers: string,
  meaning: Meaning,
  ambiguous: boolean,
  means = describeMeaning(meaning, ambiguous),
): Rule {
  return { name, answers, ranges: parseStatusRanges(answers), meaning, ambiguous, means };
}

/** The statuses that a resource gives a meaning. */
type Answers = Pick<Definition, 'success' | 'absent'>;

/**
 * The table of a run for the ids of a resource: the successes of its definition, the rules of `--on-status`, the absences of its definition, then the
 * default rules. Throws an Error for a text that `parseOnStatus` rejects.
 */
export function makeVerdictTable(onStatus: string, answers: Answers = definitionOf(anyResource)): VerdictTable {
  const asked = [...successRules(answers), ...parseOnStatus(onStatus).map(ruleOf), ...absenceRules(answers)];
  if (asked.length === 0) return verdictTable;
  const own = asked.filter((rule, i) => asked.findIndex((first) => first.answers === rule.answers) === i);
  const given = own.map((rule) => rule.answers);
  return [...own, ...verdictTable.flatMap((ours) => without(given, ours))];
}

/** The rules of a definition for successes, without a 204 that says deleted by default. */
function successRules({ success }: Answers): Rule[] {
  const others = success.filter((status) => status !== successStatus);
  const rules = others.map((status) => definedRule(status, 'success', statusFacts.success, status === acceptedStatus));
  return success.includes(successStatus)
    ? rules
    : [...rules, definedRule(successStatus, 'unexpected', statusFacts.unexpected)];
}

/** The rules of a definition for absences that differ from the default. */
function absenceRules({ absent }: Answers): Rule[] {
  const byDefault = statusRanges('gone').flatMap(statusesIn);
  const others = absent.filter((status) => !byDefault.includes(status));
  const refused = byDefault.filter((status) => !absent.includes(status));
  return [
    ...others.map((status) => definedRule(status, 'gone', statusFacts.gone)),
    ...refused.map((status) => definedRule(status, 'refused', statusFacts.refused)),
  ];
}

function definedRule(
  status: number,
  name: StatusClass,
  { meaning, isAmbiguous: ambiguous }: StatusFacts,
  isLater = false,
): Rule {
  const means = `${describeMeaning(meaning, ambiguous)}${isLater ? ': accepted, to be done later' : ''}`;
  return makeRule(name, String(status), meaning, ambiguous, means);
}

function ruleOf({ status, word }: StatusOverride): Rule {
  return makeRule(null, String(status), meaningOf[word], isAmbiguous(status));
}

const meaningOf: Record<StatusAction, Meaning> = {
  failed: 'failed',
  absent: 'gone',
  retry: 'retry',
  wait: 'wait',
  halt: 'halt',
};

/** A default rule without the given statuses. Its ranges stay, because the rules before it decide. */
function without(given: readonly string[], rule: Rule): Rule[] {
  const left = rule.answers.split(', ').filter((answer) => !given.includes(answer));
  const answers = left.join(', ');
  return left.length === 0 ? [] : [{ ...rule, answers, ranges: parseStatusRanges(answers) }];
}

/** The statuses that mean "not now" in a run: with any of them the target throttles, whatever the id. */
export function waitStatuses(table: VerdictTable): ReadonlySet<number> {
  return new Set(table.filter(({ meaning }) => meaning === 'wait').flatMap(({ ranges }) => ranges.flatMap(statusesIn)));
}

function statusesIn([from, to]: StatusRange): number[] {
  return Array.from({ length: to - from + 1 }, (_, i) => from + i);
}

/** Codes of connection errors that last until the configuration is changed: a wrong name, a certificate, no TLS. */
const configurationErrors =
  /^(ENOTFOUND|CERT_|ERR_TLS_|ERR_SSL_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_|HOSTNAME_MISMATCH|UND_ERR_INVALID_ARG|UND_ERR_PRX_TLS)/;

type StatusAnswer = Answer & { kind: 'status' };

/** Says whether a success with a body has the form of earlier ones; see `FirstAnswers`. */
export type Fits = (answer: StatusAnswer) => boolean;

const inDoubtVerdict: Verdict = { kind: 'retry', ambiguous: true };

/**
 * Decides the meaning of an answer. `doubtful`: an earlier request of this run for the id may have been executed. `fits`: whether a success with a body
 * has the form of earlier ones.
 */
export function verdictOf(
  answer: Answer,
  doubtful: boolean,
  table: VerdictTable = verdictTable,
  fits: Fits = () => true,
): Verdict {
  if (answer.kind === 'maybe-sent') return inDoubtVerdict;
  if (answer.kind === 'not-sent') return configurationErrors.test(answer.why) ? misconfigured(answer.why) : unreachable;
  const verdict = verdictOfWhole(answer, doubtful, table, fits);
  return answer.isCutOff ? withoutEnd(verdict) : verdict;
}

/** The server, or a gateway before it, failed while it answered: such an answer settles no id, whatever its status. A second request shows more. */
function withoutEnd(verdict: Verdict): Verdict {
  if (verdict.kind === 'settle') return inDoubtVerdict;
  return 'ambiguous' in verdict ? { ...verdict, ambiguous: true } : verdict;
}

function verdictOfWhole(answer: StatusAnswer, doubtful: boolean, table: VerdictTable, fits: Fits): Verdict {
  const { status, headers } = answer;
  const rule = table.find(({ ranges }) => isWithin(ranges, status));
  const mayBeOther = rule?.meaning === 'deleted' && status !== successStatus && !answer.isCutOff;
  if (mayBeOther && (isPage(answer) || !fits(answer))) return settledAs('unknown', doubtful);
  if (rule?.name != null && classifyStatus(status) === 'refused' && wantsCertificatePage.test(answer.body))
    return misconfigured(wantsCertificateCode);
  // A definition can say that a 403 means absent. With this header it is still about the token.
  if (rule?.name != null && classifyStatus(status) === 'forbidden' && lacksScope(headers)) return withoutScope(status);
  const named = rule?.name == null ? null : namedBy(answer);
  if (named === 'token') return { kind: 'credentials' };
  if (named === 'limit') return { kind: 'wait', ambiguous: false };
  return verdictBy(rule?.meaning ?? 'failed', rule?.ambiguous ?? false, status, doubtful);
}

function verdictBy(meaning: Meaning, ambiguous: boolean, status: number, doubtful: boolean): Verdict {
  switch (meaning) {
    case 'deleted':
    case 'unknown':
    case 'failed':
      return settledAs(meaning, doubtful);
    case 'gone':
      return settledAs('absent', doubtful);
    case 'retry':
    case 'wait':
      return { kind: meaning, ambiguous };
    case 'credentials':
      return { kind: 'credentials' };
    case 'halt':
      return haltedBy(status);
  }
}

/** If an earlier request may have deleted the object, it is unknown whether the object was never there or still exists. */
function settledAs(outcome: SentOutcome, doubtful: boolean): Verdict {
  return { kind: 'settle', outcome: doubtful ? inDoubt(outcome) : outcome };
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

function withoutScope(status: number): Verdict {
  const reason = `the API answered ${status} insufficient_scope: the token was not given the scope to delete these`;
  return { kind: 'halt', halt: 'forbidden', reason, ambiguous: false };
}

/**
 * Whether the answer is a page for people, by its type or its first character. A login page, or an error page of a proxy, says 200 as well and
 * confirms nothing.
 */
function isPage({ headers, body }: { headers: HeaderFields; body: string }): boolean {
  return (
    /^\s*(?:text\/html|application\/xhtml\+xml)/i.test(String(headers['content-type'] ?? '')) || /^\s*</.test(body)
  );
}

/** The meaning of an answer for an id of a resource by its definition alone, whatever `--on-status` says. */
export function definedVerdict(answer: Answer, resource: Resource): Verdict {
  return verdictOf(answer, false, makeVerdictTable('', definitionOf(resource)));
}

/** A function that says whether an answer confirms a delete by this table. */
export function confirmerOf(table: VerdictTable, fits?: Fits): (answer: Answer) => boolean {
  const isConfirmed = (answer: Answer) => {
    const verdict = verdictOf(answer, false, table, fits);
    return verdict.kind === 'settle' && verdict.outcome === 'deleted';
  };
  const byNoContent = isConfirmed(noContent);
  return (answer) => (answer === noContent ? byNoContent : answer.kind === 'status' && isConfirmed(answer));
}

/** The page of nginx to a client without a certificate, or with one that it does not take. It comes before any API. */
const wantsCertificatePage = /<title>400 (No required SSL certificate was sent|The SSL certificate error)<\/title>/;
const wantsCertificateCode = 'ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED';

/** RFC 6750, section 3.1: the token has no right to delete, whatever the id. */
function lacksScope(headers: HeaderFields): boolean {
  return /\berror\s*=\s*"?insufficient_scope\b/i.test(String(headers['www-authenticate'] ?? ''));
}

/** The result of one request. Only its kind says whether the request may have been executed; see send-delete.ts. */
export type Answer =
  /** The server answered. `body` holds at most 2 kB; `authorization` is the token that was sent; `isCutOff`: the end of the body never came. */
  | { kind: 'status'; status: number; headers: HeaderFields; body: string; authorization: string; isCutOff?: true }
  /** The request was written and no status came: it may have been executed. */
  | { kind: 'maybe-sent'; code: CodeWord; why: string }
  /** The request was never written. `why` is the system's code, for example ECONNREFUSED. */
  | { kind: 'not-sent'; why: string };

/** A 204, shared by all requests to save allocations. A 204 with rate headers is an object of its own. */
export const noContent: Answer = { kind: 'status', status: successStatus, headers: {}, body: '', authorization: '' };

/** Whether the answer refuses the token: another connection may lead to a server that accepts it. */
export function isTokenRefusal(answer: Answer | null): boolean {
  return answer?.kind === 'status' && refusesToken(answer);
}
