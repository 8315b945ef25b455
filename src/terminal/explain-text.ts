import { plural, timeOfDay, utcTime } from '../format.ts';
import type { Run, RunState } from '../ledger/run.ts';
import type { FoundRow, FoundRows, OpenId } from '../lookup/find-id.ts';
import type { Outcome } from '../model/outcome.ts';
import { cancelCode } from '../model/selection.ts';
import { findStatusFacts, isAmbiguous, successStatus } from '../model/status.ts';
import { visibleLine } from '../model/visible.ts';
import { hanging } from './render-markdown.ts';
import { plainStyle, type Style } from './style.ts';

type RunFacts = Pick<Run, 'id' | 'state' | 'doubt' | 'retryOf'>;

/** How to show it. `columns`: the maximum width of a line. */
type Look = { style?: Style; columns?: number };

const shownLines = 5;

/** The outcome of an id in one run that has it. `now`: ms since 1970. Pure. */
export function explainText(
  run: RunFacts,
  found: FoundRows & { proof?: readonly string[] },
  now: number,
  look: Look = {},
): string {
  const { style = plainStyle, columns = Number.POSITIVE_INFINITY } = look;
  const [first, ...others] = found.rows;
  const places = others.slice(0, shownLines).map((row) => `${place(row)} ${row.outcome}`);
  const more = Math.max(0, others.length - shownLines) + found.more;
  const also = [...places, ...(more > 0 ? [`${plural(more, 'other lines')}`] : [])];
  const details = [
    visibleLine(whyText(run, first!, now)),
    ...excerptLines(first!),
    ...(first!.outcome === 'deleted' ? (found.proof ?? []).map(sentence) : []),
    ...(also.length === 0 ? [] : [`Also at ${also.join(', ')}`]),
    ...(run.retryOf === '' ? [] : [`Retry of run ${run.retryOf}`]),
  ];
  return [
    `Run ${run.id} · ${run.state} · ${place(first!)}`,
    `  ${[style.bold(first!.outcome), ...facts(first!)].join(' · ')}`,
    ...details.map((text) => hanging(text, '  ', columns)),
  ].join('\n');
}

function sentence(text: string): string {
  return visibleLine(`${text[0]!.toUpperCase()}${text.slice(1)}.`);
}

/** The answer of the API, or why there was none. */
function excerptLines({ excerpt, outcome, status }: FoundRow): string[] {
  if (excerpt === '' || outcome === 'duplicate') return [];
  if (isPutBack({ outcome, excerpt })) return [sentence(excerpt)];
  return [`${status === null ? 'The last error' : 'It answered'}: ${visibleLine(excerpt)}`];
}

function place({ file, line }: FoundRow): string {
  return `${visibleLine(file)}:${line}`;
}

function facts({ code, outcome, attempts, settledAt }: FoundRow): string[] {
  return [
    ...(code === '' || code === outcome ? [] : [code]),
    ...(attempts === 0 ? [] : [plural(attempts, 'attempts')]),
    ...(settledAt === '' ? [] : [utcTime(Date.parse(settledAt), 'second')]),
  ];
}

/** The reason for the outcome of an id, or what it waits for, in a sentence or two. Pure. */
export function whyText(run: RunFacts, row: FoundRow, now: number): string {
  if (row.outcome === 'pending') return pendingText(run, row, now);
  return reasons[row.outcome](row, run);
}

const reasons: Record<Outcome, (row: FoundRow, run: RunFacts) => string> = {
  deleted: ({ status }) => `The API confirmed the delete with ${status ?? successStatus}.`,
  absent: ({ status }) =>
    isGone(status)
      ? `The API answered ${status} to the first request of this run that can have been executed. That does not show who deleted it.`
      : `The API answered ${status}, which --on-status of this run or the definition of the resource counts as absent.`,
  gone_unconfirmed: ({ status }, { doubt }) =>
    `A ${status} after a request that may have been executed: it is gone, but no success confirms that this run deleted it.${doubtText(doubt)}`,
  failed: failedText,
  unknown: (row, { doubt }) => `${unknownText(row)}${doubtText(doubt)}`,
  not_attempted: (row) =>
    isPutBack(row)
      ? 'The run was cancelled before any attempt that counts. It was sent at least once.'
      : 'The run was cancelled before any attempt: it was never sent.',
  rejected: ({ code }) => `The row holds no id that is safe to send (${code}): it was never sent.`,
  duplicate: ({ excerpt }) => `The id is listed earlier (${excerpt}) and was sent once.`,
  protected: () => '--protect listed the id: it was never sent.',
};

/** Whether its excerpt is about an answer that is not its outcome. */
function isPutBack({ outcome, excerpt }: Pick<FoundRow, 'outcome' | 'excerpt'>): boolean {
  return (outcome === 'pending' || outcome === 'not_attempted') && excerpt !== '';
}

function isGone(status: number | null): boolean {
  return status === null || findStatusFacts(status).meaning === 'gone';
}

function failedText(row: FoundRow): string {
  const attempts = plural(row.attempts, 'attempts');
  if (row.code === cancelCode) return `The run was cancelled after ${attempts}, none of which can have been executed.`;
  if (row.status === null) return `No request reached the API, in ${attempts}.`;
  return `The API refused it: ${answer(row)}${inAll(row)}. It presumably still exists.`;
}

function unknownText(row: FoundRow): string {
  if (row.code === cancelCode) return 'The run was cancelled while a request for it may have been executed.';
  const decided = `${answer(row)}${inAll(row)}`;
  if (row.status !== null && isGone(row.status))
    return `The API said that it is not there (${decided}), but accepted nothing after it: perhaps it said so of everything.`;
  return row.status !== null && !isAmbiguous(row.status)
    ? `It was refused (${decided}), but an earlier request may have been executed.`
    : `No definite answer: ${decided}. A request may have been executed.`;
}

function doubtText(doubt: string): string {
  return doubt === '' ? '' : ` The run is in doubt: ${doubt}.`;
}

/** What decided the outcome: an answer, or the lack of one. */
function answer({ status, code }: FoundRow): string {
  return status === null ? (withoutAnswer[code] ?? code) : `the last answer was ${status}`;
}

const withoutAnswer: Record<string, string> = {
  none: 'no answer is known',
  timeout: 'no answer in time',
  reset: 'the connection broke before an answer',
  protocol: 'the answer was not HTTP',
  http_other: 'the answer had a status outside 200 to 599',
};

function inAll({ attempts }: FoundRow): string {
  return attempts > 1 ? `, after ${plural(attempts, 'attempts')}` : '';
}

const notSending: Partial<Record<RunState, string>> = {
  preparing: 'The list is still being written to Redis: nothing was sent.',
  planned: 'The run has not started: nothing was sent.',
  paused: 'Nothing is sent while the run is paused, until the command resume continues it.',
  halted: 'Nothing is sent while the run is halted, until the command resume continues it.',
  cancelling: 'The run is being cancelled: nothing more is sent.',
};

function pendingText({ state }: RunFacts, row: FoundRow, now: number): string {
  const stopped = notSending[state] ?? '';
  if (row.open === null) return stopped;
  // What is due in a run that sends nothing is not sent then.
  const open = stopped === '' ? row.open : { ...row.open, nextTryAt: null };
  return [stopped, openText(row, open, now)].filter(Boolean).join(' ');
}

function openText(row: FoundRow, { isInFlight, inDoubt, nextTryAt }: OpenId, now: number): string {
  const doubt = inDoubt
    ? ' In doubt: an earlier request may have been executed, so a 404 would be gone_unconfirmed.'
    : '';
  if (isInFlight) return `A request for it is in flight, or its process was killed.${doubt}`;
  const tried = `It waits ${triedText(row)}`;
  const next = nextTryAt === null ? '' : `: next try at ${timeOfDay(Math.max(now, nextTryAt), now)}`;
  return `${tried}${next}.${doubt}`;
}

function triedText(row: FoundRow): string {
  if (row.attempts > 0) return `after ${plural(row.attempts, 'attempts')}`;
  return isPutBack(row) ? 'after it was sent at least once' : 'for its first attempt';
}
