import {
  type Cell,
  countAttempts,
  isDoubtful,
  isSettled,
  quickAttempts,
  settle,
  timesMarked,
  unmark,
} from '../ledger/cell.ts';
import type { HaltCode } from '../ledger/run.ts';
import { codeOfStatus, codeOfWord, inDoubt, isGone } from '../model/outcome.ts';
import { isThrottling } from '../model/status.ts';
import { visibleId } from '../model/visible.ts';
import { describeConnectionError } from '../system-errors.ts';
import { withoutSecret } from '../token/fixed-token.ts';
import { refusalWords } from '../token/said.ts';
import type { Token } from '../token/token.ts';
import type { RetryReason } from './meters.ts';
import { namesLimit } from './named-codes.ts';
import type { Belief, Moment, Refusals, Refused } from './refusals.ts';
import { maxRefusals } from './refused-ids.ts';
import type { TargetLimits } from './target-limits.ts';
import { type Answer, type Fits, type Verdict, type VerdictTable, verdictOf } from './verdict.ts';

/**
 * The result of a pass for one id: its next cell, whether this pass may send it again, and the wait in ms before that. A wait of 0 means that the
 * number of attempts decides.
 */
type IdPassResult = { cell: Cell; mayResend: boolean; waitMs: number };

/** The beliefs by which expunge asks for an id again. */
type Asks = 'probe' | 'ask again' | 'ask later';

/** The dependencies of an id's attempts. */
export type DeleteIdDeps = {
  limits: TargetLimits;
  token: Token;
  /** The meaning of each answer in this run. */
  verdicts: VerdictTable;
  /** Whether a success with a body has the form of earlier ones. */
  fits: Fits;
  /** The time in ms for which this process has got no answer at all in this run; 0 once it got one. */
  silentMs(): number;
  /** Whether a request that may have been executed is never sent again. */
  isNeverRepeated: boolean;
  retryDelaysMs: readonly number[];
  unreachableTimeoutMs: number;
  refusals: Pick<Refusals, 'moment' | 'haltOf'>;
  /** Judges a refusal of the id; see `Refusals.judge`. */
  judge(refused: Omit<Refused, 'id' | 'ms'>): Promise<Belief>;
  /** Notes that this header was refused for the id. Returns how often that happened, or 0 as long as it may be about the token. */
  noteRefusal(authorization: string): Promise<number>;
  random: () => number;
  /** The id as text. */
  idText(): string;
  /** Sends the id's request again; null if sending is no longer allowed. */
  send(): Promise<Answer | null>;
  /** The same for an id that was refused, for whose request it waits as long as it takes. Only a probe is sent while ids are sent one at a time. */
  ask(why: Asks): Promise<Answer | null>;
  /** Resolves to true after `ms`, or to false at once if the pass ends before. */
  wait(ms: number): Promise<boolean>;
  /** The same as `wait`, for an id that does not delay other ids. */
  rest(ms: number): Promise<boolean>;
  /** Called when the id is to be sent again: now, later in this pass, or in another pass. */
  retried(reason: RetryReason): void;
  /** Stops the whole run. */
  halt(code: HaltCode, reason: string): void;
};

/**
 * Takes an id from its first answer to its last answer in this pass: up to three quick attempts in the first pass, one attempt in each later pass.
 * `marked` is the cell as it was marked. The ledger keeps the mark until the end, so a crash leaves the id in doubt.
 */
export async function deleteId(marked: Cell, first: Answer, deps: DeleteIdDeps): Promise<IdPassResult> {
  const id: OpenId = {
    marked,
    attempts: countAttempts(marked),
    doubtful: isDoubtful(marked),
    answer: first,
    asked: 0,
    wasAskedLater: false,
    refusedAt: null,
    isBelieved: false,
  };
  for (let n = 1; ; n++) {
    const found = await attempt(id, n === 1 ? first : null, deps);
    if (found === 'withheld') return { cell: openCell(id), mayResend: true, waitMs: 0 };
    const waitMs = backoffMs(n, deps.random());
    if (found === 'try again') {
      const mayTryAgain = id.attempts < quickAttempts && deps.limits.mayRetry;
      if (!mayTryAgain || !(await deps.wait(waitMs))) return deferOrSettle(id, deps);
      continue;
    }
    const end = await conclude(id, found, deps);
    if (end !== 'elsewhere') return end;
    if (n >= quickAttempts || !(await deps.rest(waitMs))) return resendRefused(id, deps);
  }
}

/** An id and its state after its attempts so far. */
type OpenId = {
  readonly marked: Cell;
  attempts: number;
  doubtful: boolean;
  answer: Answer;
  /** How often expunge asked for it again because it was refused; also after the longer wait. */
  asked: number;
  wasAskedLater: boolean;
  /** When it was first refused; null if it never was. */
  refusedAt: Moment | null;
  /** Whether a refusal of it was believed. */
  isBelieved: boolean;
};

/** One attempt, which asks several times for an id that is refused. `withheld`: nothing may be sent now, and it was no attempt. */
async function attempt(
  id: OpenId,
  first: Answer | null,
  deps: DeleteIdDeps,
): Promise<Verdict | 'try again' | 'withheld'> {
  let asks: Asks = 'probe';
  for (let answer = first ?? (await deps.send()); answer !== null; answer = await deps.ask(asks)) {
    id.answer = answer;
    if (answer.kind !== 'status') haltUnreachable(answer, deps);
    let verdict = onceOnly(verdictOf(answer, id.doubtful, deps.verdicts, deps.fits), deps);
    if (answer.kind === 'status' && isRefusal(verdict) && !id.isBelieved) {
      const belief = await judge(id, answer.status, verdict.kind === 'settle' && isGone(verdict.outcome), deps);
      if (belief === 'withheld') return belief;
      if (isAsking(belief)) {
        asks = belief;
        continue;
      }
      if (belief === 'unproven') verdict = { kind: 'settle', outcome: 'unknown' };
      id.isBelieved = true;
    }
    if (verdict.kind === 'settle') id.attempts++;
    if ('ambiguous' in verdict) id.doubtful ||= verdict.ambiguous;
    return verdict.kind === 'retry' ? countTry(id, deps) : verdict;
  }
  return 'withheld';
}

/** The verdict for an id whose DELETE is never repeated: if it may have been executed, that is the outcome. A halt keeps its doubt. */
function onceOnly(verdict: Verdict, { isNeverRepeated }: DeleteIdDeps): Verdict {
  const isInDoubt = 'ambiguous' in verdict && verdict.ambiguous && verdict.kind !== 'halt';
  return isNeverRepeated && isInDoubt ? { kind: 'settle', outcome: 'unknown' } : verdict;
}

/** Counts an attempt that is not final, unless the whole target is in trouble. */
function countTry(id: OpenId, { limits, retryDelaysMs, retried }: DeleteIdDeps): 'try again' | 'withheld' {
  if (limits.isCircuitOpen) {
    retried('outage');
    return 'withheld';
  }
  id.attempts++;
  if (id.attempts < maxAttempts(retryDelaysMs)) retried(reasonOf(id.answer));
  return 'try again';
}

/** Whether an answer that does not accept the request is about its id: it settles the id, or has it retried although nothing was executed. */
function isRefusal(verdict: Verdict): boolean {
  if (verdict.kind === 'settle') return isGone(verdict.outcome) || verdict.outcome === 'failed';
  return verdict.kind === 'retry' && !verdict.ambiguous;
}

function isAsking(belief: Belief | 'withheld'): belief is Asks {
  return belief in waitsMs;
}

/** Whether a refusal is about the id. Asking for it again costs no attempt. */
async function judge(
  id: OpenId,
  status: number,
  isGone: boolean,
  { refusals, judge, rest, retried, halt, random, retryDelaysMs }: DeleteIdDeps,
): Promise<'believed' | 'unproven' | Asks | 'withheld'> {
  const { asked, wasAskedLater, refusedAt: before, doubtful: isInDoubt } = id;
  const belief = await judge({ status, isGone, asked, wasAskedLater, before, isInDoubt });
  if (belief === 'believed' || belief === 'unproven') return belief;
  if (belief === 'halt') {
    const { code, reason } = refusals.haltOf(status, isGone);
    halt(code, `${reason}. The last answer: ${toExcerpt(id.answer) || 'empty'}`);
  }
  if (belief === 'halt' || belief === 'ended') return 'withheld';
  retried('status');
  id.refusedAt ??= refusals.moment;
  id.wasAskedLater ||= belief === 'ask later';
  return (await rest(waitsMs[belief](id.asked++, random(), retryDelaysMs))) ? belief : 'withheld';
}

/** The wait in ms before an id is asked for again. Random waits separate ids that were refused in a row, so that they do not stay in a row for ever. */
const waitsMs = {
  probe: () => 0,
  'ask again': (asked: number, random: number) => (asked === 0 ? 3_000 : 2_000 + random * 3_000),
  'ask later': (_asked: number, _random: number, [first = 0, second = first]: readonly number[]) => second,
};

async function conclude(id: OpenId, verdict: Verdict, deps: DeleteIdDeps): Promise<IdPassResult | 'elsewhere'> {
  switch (verdict.kind) {
    case 'settle':
      return { cell: settle(verdict.outcome, id.attempts, codeOf(id.answer)), mayResend: false, waitMs: 0 };
    case 'credentials':
      return askForAnotherToken(id, deps);
    case 'unreachable':
      deps.retried('unreachable');
      break;
    case 'halt':
      deps.halt(verdict.halt, verdict.reason + answerText(id, deps));
      break;
    case 'wait':
      deps.retried('throttled');
      return deferThrottled(id, deps);
    case 'retry':
      break;
  }
  return { cell: openCell(id), mayResend: true, waitMs: 0 };
}

/**
 * The id that halts a run, and the answer to it, for the halt's reason. The ledger keeps neither, because the id stays open. '' without an answer.
 */
function answerText({ answer }: OpenId, { idText }: DeleteIdDeps): string {
  if (answer.kind !== 'status') return '';
  const excerpt = toExcerpt(answer);
  return `: ${visibleId(idText())}${excerpt === '' ? '' : `, answered "${excerpt}"`}`;
}

/**
 * A throttled request is about the rate, so the id is sent again with the next permit. Another status that means "not now" may be about this id
 * alone. With permits the id would be sent over and over, so it is deferred for a later pass.
 */
function deferThrottled(id: OpenId, { retryDelaysMs }: DeleteIdDeps): IdPassResult {
  if (id.answer.kind === 'status' && (isThrottling(id.answer.status) || namesLimit(id.answer)))
    return { cell: openCell(id), mayResend: true, waitMs: 0 };
  return { cell: openCell(id), mayResend: false, waitMs: waitDelayMs(timesMarked(id.marked), retryDelaysMs) };
}

/** While the token is in doubt, the token decides when something is sent. `elsewhere`: other requests with it get through. */
async function askForAnotherToken(id: OpenId, deps: DeleteIdDeps): Promise<IdPassResult | 'elsewhere'> {
  const { token, retried, halt } = deps;
  const resend: IdPassResult = { cell: openCell(id), mayResend: true, waitMs: 0 };
  if (id.answer.kind !== 'status') return resend;
  const refusals = await deps.noteRefusal(id.answer.authorization);
  if (refusals > 0) return deferRefused(id, refusals, deps);
  const next = token.refused(id.answer.authorization, refusalWords(id.answer));
  if (typeof next !== 'string') {
    halt('credentials', next.halt);
    return resend;
  }
  retried('credentials');
  return next === 'elsewhere' ? next : resend;
}

/**
 * Sends an id again that was refused while others got through. In its first attempts the next request may reach another server. Then it waits up to
 * 10 s, as the refusal may be about this id alone.
 */
function resendRefused(id: OpenId, { random }: DeleteIdDeps): IdPassResult {
  const times = timesMarked(id.marked) - quickAttempts;
  if (times <= 0) return { cell: openCell(id), mayResend: true, waitMs: 0 };
  return { cell: openCell(id), mayResend: false, waitMs: backoffMs(times, random()) };
}

/** The API refuses this id with a token that others get through with: it is sent again a few times, and then has failed. */
function deferRefused(id: OpenId, refusals: number, { random, retried }: DeleteIdDeps): IdPassResult {
  if (refusals >= maxRefusals) return fail(id, refusals);
  retried('credentials');
  return { cell: openCell(id), mayResend: false, waitMs: backoffMs(refusals, random()) };
}

/** Halts the run after a long time in which the API could not be reached, or in which it has never answered. */
function haltUnreachable(
  { kind, why }: Exclude<Answer, { kind: 'status' }>,
  { limits, silentMs, unreachableTimeoutMs, halt }: DeleteIdDeps,
): void {
  const outageMs = kind === 'not-sent' ? limits.unreachableMs : 0;
  if (Math.max(outageMs, silentMs()) <= unreachableTimeoutMs) return;
  const words = kind === 'not-sent' ? 'the API cannot be reached' : 'the API has not answered any request';
  halt('target_unreachable', `${words}: ${describeConnectionError(why)}`);
}

/** Without a quick attempt left, the id is due in a later pass, or is settled after its last attempt. */
function deferOrSettle(id: OpenId, { retryDelaysMs }: DeleteIdDeps): IdPassResult {
  if (id.attempts < maxAttempts(retryDelaysMs)) return { cell: openCell(id), mayResend: false, waitMs: 0 };
  return fail(id, id.attempts);
}

/** The end of an id that was refused for the last time; unknown if an earlier request for it may have been executed. */
function fail(id: OpenId, attempts: number): IdPassResult {
  const cell = settle(id.doubtful ? inDoubt('failed') : 'failed', attempts, codeOf(id.answer));
  return { cell, mayResend: false, waitMs: 0 };
}

function openCell(id: OpenId): Cell {
  return isSettled(id.marked) ? id.marked : unmark(id.marked, id.attempts, id.doubtful);
}

function reasonOf(answer: Answer): RetryReason {
  return answer.kind === 'maybe-sent' ? answer.code : 'status';
}

function codeOf(answer: Answer): number {
  if (answer.kind === 'status') return codeOfStatus(answer.status);
  return codeOfWord(answer.kind === 'maybe-sent' ? answer.code : 'none');
}

const baseMs = 200;
const capMs = 10_000;

/**
 * The wait before quick attempt number `attempt` + 1, in ms, with full jitter: anything from 0 to 200 ms · 2^attempt, at most 10 s. `random` is from
 * 0 to 1.
 */
export function backoffMs(attempt: number, random: number): number {
  return random * Math.min(capMs, baseMs * 2 ** attempt);
}

/** The maximum number of attempts for an id: the quick attempts, and one in each later pass. */
export function maxAttempts(retryDelaysMs: readonly number[]): number {
  return quickAttempts + retryDelaysMs.length;
}

/** The time after its last pass, in ms, at which an id with this many attempts is due again; 0 if it had none yet. */
export function retryDelayMs(attempts: number, retryDelaysMs: readonly number[]): number {
  if (attempts === 0) return 0;
  return retryDelaysMs[Math.max(0, attempts - quickAttempts)] ?? 0;
}

/** The wait of a throttled id, in ms, by how often it was sent or its mark was withdrawn: throttled requests do not count as attempts. */
export function waitDelayMs(times: number, retryDelaysMs: readonly number[]): number {
  return retryDelaysMs[Math.min(times, retryDelaysMs.length) - 1] ?? 0;
}

const excerptLength = 200;
const requestIdHeaders = ['x-request-id', 'x-correlation-id', 'x-amzn-requestid', 'cf-ray'];

/**
 * An error answer for people, at most 200 printable characters: its request id, then its body. Control characters are dropped. Text that looks like a
 * bearer token is masked, because servers echo what they were sent.
 */
export function toExcerpt(answer: Answer): string {
  if (answer.kind !== 'status') return describeConnectionError(answer.why);
  const name = requestIdHeaders.find((header) => answer.headers[header] !== undefined);
  const requestId = name === undefined ? '' : `[${String(answer.headers[name])}] `;
  return clean(requestId + answer.body, answer.authorization).slice(0, excerptLength);
}

function clean(text: string, authorization: string): string {
  return withoutSecret(text, authorization.replace(/^Bearer /, ''))
    .replace(/bearer\s+\S+/gi, 'Bearer ***')
    .replace(/[\p{C}\s]+/gu, ' ')
    .trim();
}
