/** The only status that proves a delete: No Content. */
export const successStatus = 204;

/** The answer to a request that will be carried out later: Accepted. A resource can define it as a success. */
export const acceptedStatus = 202;

/** The answer to a request above the rate limit: Too Many Requests. */
export const throttlingStatus = 429;

/** The meaning of an answer for its id. `gone` becomes `absent` or `gone_unconfirmed`; see verdict.ts. */
export type Meaning = 'deleted' | 'gone' | 'failed' | 'unknown' | 'retry' | 'wait' | 'credentials' | 'halt';

/** The meanings that `--on-status` can give a status. Never `deleted`, because only a 204 proves that. */
export const statusActions = ['failed', 'absent', 'retry', 'wait', 'halt'] as const;
export type StatusAction = (typeof statusActions)[number];

/** The facts about a status. */
export type StatusFacts = {
  /** Statuses and ranges of statuses. */
  answers: string;
  meaning: Meaning;
  /** Whether a request with this answer may have been executed. */
  isAmbiguous: boolean;
  /** The statement of the answer about the target: it accepted the request, refused it because of the rate, failed, or says nothing. */
  signal: 'accepted' | 'refused' | 'trouble' | 'nothing';
  /** Whether Retry-After is obeyed: on any answer that means "not now" (RFC 9110 §10.2.3). */
  mayAskToWait: boolean;
  /** The meanings that `--on-status` can give it, and why no others. */
  actions: readonly StatusAction[];
  why: string;
  /** The meaning for people, if the meaning alone does not express it. */
  means?: string;
};

const noAction: StatusAction[] = [];
const noAbsence: StatusAction[] = ['failed', 'retry', 'wait', 'halt'];
const finalOrHalt: StatusAction[] = ['failed', 'retry', 'halt'];

type Facts = Omit<StatusFacts, 'answers' | 'meaning'>;

const usual: Facts = { isAmbiguous: false, signal: 'accepted', mayAskToWait: false, actions: statusActions, why: '' };

const troubled: Facts = {
  isAmbiguous: true,
  signal: 'trouble',
  mayAskToWait: true,
  actions: noAbsence,
  why: 'it says nothing about whether the object is there',
};

function row(answers: string, meaning: Meaning, facts: Partial<Facts> = {}): StatusFacts {
  return { ...usual, answers, meaning, ...facts };
}

/**
 * The meaning of each status; the first row that matches decides. This table decides the verdict on an id, which answers count as throttled or as
 * trouble of the target, which Retry-After is obeyed, what `--on-status` can change, and the texts for people.
 */
const table = {
  success: row(`${successStatus}`, 'deleted', { actions: noAction, why: 'it is the one answer that says deleted' }),
  // An API may choose the form of its answer, or redirect to a page, after it has executed the request (RFC 9110, sections 15.4.4 and 15.5.7).
  unexpected: row('200-399, 406', 'unknown', {
    isAmbiguous: true,
    actions: finalOrHalt,
    why: 'it may have been executed, and nothing says that it was',
    means: 'unknown: never a success; may have been executed; a redirect is never followed',
  }),
  unauthorized: row('401', 'credentials', {
    signal: 'nothing',
    actions: ['failed', 'halt'],
    why: 'it speaks about the token, not about the id',
  }),
  barred: row('402, 407, 451', 'halt'),
  forbidden: row('403', 'failed', { means: 'failed; halts the run at the first answer with insufficient_scope' }),
  gone: row('404, 410', 'gone', { actions: ['failed', 'absent', 'retry', 'halt'], why: 'waiting would never end' }),
  timeout: row('408', 'retry', { ...troubled, mayAskToWait: false }),
  busy: row('409, 421, 423, 425', 'retry'),
  throttled: row(`${throttlingStatus}`, 'wait', {
    signal: 'refused',
    mayAskToWait: true,
    actions: ['wait', 'halt'],
    why: 'no id is lost to a rate limit',
  }),
  refused: row('400-499', 'failed'),
  unsupported: row('501, 505', 'failed', { ...troubled, isAmbiguous: false, signal: 'accepted' }),
  trouble: row('500-999', 'retry', troubled),
};

export type StatusClass = keyof typeof table;

/** The names of the rows, in the order of the table. */
export const statusClasses = Object.keys(table) as StatusClass[];

export const statusFacts: Readonly<Record<StatusClass, StatusFacts>> = table;

/** The first and the last status of a range. */
export type StatusRange = readonly [from: number, to: number];

/** Reads the statuses in a text like `404, 410, 500-999`. */
export function parseStatusRanges(answers: string): StatusRange[] {
  return answers.split(', ').map((answer) => {
    const [from = 0, to = from] = answer.split('-').map(Number);
    return [from, to] as const;
  });
}

/** Whether a status is in one of the ranges. */
export function isWithin(ranges: readonly StatusRange[], status: number): boolean {
  return ranges.some(([from, to]) => status >= from && status <= to);
}

/** The statuses of a row. */
export function statusRanges(name: StatusClass): StatusRange[] {
  return parseStatusRanges(table[name].answers);
}

const classByStatus: (StatusClass | undefined)[] = [];
for (const name of statusClasses.toReversed()) {
  for (const [from, to] of statusRanges(name))
    for (let status = from; status <= to; status++) classByStatus[status] = name;
}

/** The row of a status; `refused` for a number that is not an HTTP status. */
export function classifyStatus(status: number): StatusClass {
  return classByStatus[status] ?? 'refused';
}

export function findStatusFacts(status: number): StatusFacts {
  return table[classifyStatus(status)];
}

/** Whether the answer is about the rate, not about the id. */
export function isThrottling(status: number): boolean {
  return findStatusFacts(status).signal === 'refused';
}

/** Whether a request with this answer may have been executed. */
export function isAmbiguous(status: number): boolean {
  return findStatusFacts(status).isAmbiguous;
}

/** Whether an answer with this status refuses its id: nothing was executed, and it is not about the token, the rate or the API as a whole. */
export function isRefusal(status: number): boolean {
  const { meaning, isAmbiguous } = findStatusFacts(status);
  return !isAmbiguous && ['failed', 'gone', 'retry'].includes(meaning);
}

/** The statuses in words: `404 or 410`. */
export function statusesText(name: StatusClass): string {
  return table[name].answers.replace(/, (?=[^,]*$)/, ' or ');
}

/** Describes what happens to the id of an answer with this meaning. */
export function describeMeaning(meaning: Meaning, ambiguous: boolean): string {
  return meanings[meaning](ambiguous);
}

const meanings: Record<Meaning, (ambiguous: boolean) => string> = {
  deleted: () => 'deleted',
  gone: () => 'absent, or gone_unconfirmed after a request that may have been executed',
  failed: () => 'failed',
  unknown: () => 'unknown',
  retry: (ambiguous) => (ambiguous ? 'retried; may have been executed' : 'retried; failed at the end'),
  wait: () => 'waits as the server asks; not an attempt',
  credentials: () => 'asks for another token once and waits for it, or halts the run; not an attempt',
  halt: () => 'halts the run at the first such answer',
};
