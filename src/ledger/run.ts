import { randomInt } from 'node:crypto';
import { ExpungeError } from '../errors.ts';
import { type Outcome, type OutcomeCounts, perOutcome, sumOutcomes } from '../model/outcome.ts';
import { readableRate } from '../model/rate.ts';
import { isWithin, type Reach } from '../model/target.ts';
import type { Advice } from '../model/to-type.ts';
import type { Verification } from '../model/verification.ts';
import type { RedisClient } from '../redis/client.ts';
import { keys } from '../redis/keys.ts';
import { maxSilenceMs } from './active-time.lua.ts';
import { parseRules, type RunRules } from './run-rules.ts';

/**
 * preparing → planned → running ⇄ paused | halted → completed; cancel: cancelling → cancelled. `completed` and `cancelled` are finalized: their
 * ledger no longer changes.
 */
export type RunState = (typeof runStates)[number];

export const runStates = [
  'preparing',
  'planned',
  'running',
  'paused',
  'halted',
  'completed',
  'cancelling',
  'cancelled',
] as const;

/** Why a rule or a guard halted a run; each has an exit code. */
export const haltCodes = [
  'unexpected_answers',
  'wrong_endpoint',
  'forbidden',
  'refused',
  'all_absent',
  'max_failures',
  'canary',
  'max_deletes',
  'halting_status', // a status that halts a run at once
  'credentials',
  'target_configuration',
  'target_unreachable',
  'ledger_lost',
] as const;

/** The same reasons, and `time_up`: `--stop-at` or `--max-duration` paused the run. */
export type HaltCode = (typeof haltCodes)[number] | 'time_up';

/** The actor who brought a run into its state: an operator, Ctrl-C or SIGTERM of `run`, or a guard of expunge. */
export type SteeredBy = 'operator' | 'interrupt' | 'guard';

/** A pause that an operator asked for. `at`: ms since 1970, by the clock of Redis. */
export type OperatorPause = { id: string; who: string; reason: string; at: number };

/** A process whose definition of a resource is not the definition of the run, so that it deletes nothing of it. `at`: ms since 1970. */
export type Misfit = { process: string; why: string; at: number };

/** A run as Redis holds it, with the rules that it obeys. Times are ms since 1970, 0 = not yet. */
export type Run = RunRules & {
  id: string;
  schema: number;
  state: RunState;
  reason: string;
  by: SteeredBy | '';
  who: string;
  pauses: OperatorPause[]; // pauses that operators asked for and nobody has lifted, oldest first; also of a halted run, and while it is being written
  cancelBy: string; // who asked to cancel it while it was being written, as JSON; '' = no one
  createdBy: string;
  halt: HaltCode | '';
  baseUrl: string;
  account: string;
  fp: string;
  detached: boolean;
  command: string; // the command that made it and resumes it, as a line to type; '' for a schedule
  files: string[];
  sha256: string;
  list: string;
  definitions: string; // of its configured resources; see `definitionsText`; '' = all are built in
  misfit: Misfit | null; // the last process that left it alone because of its definitions; null = none since a chunk was claimed
  note: string; // --reason
  rehearsalOf: string; // the base URL of the run that it rehearses against a sandbox; '' = a real run
  retryOf: string; // the run whose ids it sends again; a run of a schedule can also have ids of a list; '' = none
  retriedBy: string[]; // the runs that retry ids of this run, oldest first
  plan: string; // the plan that it carries out; '' = none
  approver: string; // the only person who is allowed to loosen the rules of that plan; '' = anyone
  planChanged: string; // the rules that were loosened since: `max-failures 2 to 5 by bob`; '' = none
  unreadRate: string; // a rate that this version can't read: nothing of the run is sent; '' = none
  quotaUntil: number; // the time when a used-up quota of the rate has room again, as last recorded
  nextPermitAt: number; // the time when the next permit of its rate is due, as last recorded
  acceptedAt: number; // when it was written completely, by the clock of Redis: grace periods count from here
  minGraceMs: number; // the minimum of its target at that time
  startsAt: number; // nothing of it is sent before this moment by the clock of Redis; 0 = it starts at once
  closedUntil: number; // when that window opens, by the clock of Redis, if a deleting process last found it closed; 0 = it was open
  canary: string; // the remaining rungs: ids and chunks before the end of each, `10:2 100:3`; '' = none
  sendable: string; // the ids of maxDeletes: `12:100` = the chunks before 12, and the first 100 ids of chunk 12; '' = all
  doubt: string; // why Redis may have lost a part of it; '' = it is not in doubt
  doubtSince: number;
  rows: number;
  ids: number;
  chunks: number;
  blocks: number;
  next: number;
  settled: number;
  attempts: number;
  late: number;
  bodies: number; // answers that were a 204 with a body; see `describeBodies`
  counts: OutcomeCounts;
  protectedRead: number | null; // ids in the protect file, whether they matched or not; null without one
  createdAt: number;
  startedAt: number;
  endedAt: number;
  changedAt: number;
  changes: number; // number of changes of its state
  revision: number; // number of changes of any kind; an action names the number that was seen
  published: number; // number of the last of these changes that was passed on to the outbox
  activeUntil: number; // time up to which `activeMs` is counted, while it is running
  activeMs: number;
  tallied: boolean;
  delivered: number; // when its report was delivered; for a detached run, its end
  reportIn: string; // the folder or file of its report; '' = none
  isExpiring: boolean; // all its keys have an expiry
  resultsWanted: boolean; // a worker with --results is to deliver its results
  resultsOf: string; // the end of the run whose results were delivered last; '' = none
  resultsAt: number; // when they were delivered
  resultsIn: string; // the folder or URL they are in
  resultsBy: string; // the machine that wrote them
  resultsProblem: string; // why the last delivery failed
  verified: Verification | null; // the last result of sending some of its deleted ids again
};

/** The schema number: the form of everything that a run stores. Processes leave runs with another number as they are. */
export const schemaVersion = 9;

const finalizedStates: readonly RunState[] = ['completed', 'cancelled'];

/** Whether the ledger of a run in this state can no longer change. */
export function isFinalized(state: RunState): boolean {
  return finalizedStates.includes(state);
}

/** Whether a run is halted for this reason. */
export function isHaltedFor({ state, halt }: Pick<Run, 'state' | 'halt'>, code: HaltCode): boolean {
  return state === 'halted' && halt === code;
}

/** Whether a guard has paused a run because of `--stop-at` or `--max-duration`. */
export function isTimeUp({ state, halt }: Pick<Run, 'state' | 'halt'>): boolean {
  return state === 'paused' && halt === 'time_up';
}

/** Whether a run needs nothing more: it is finalized, and its report is delivered. */
export function isOver({ state, delivered }: Pick<Run, 'state' | 'delivered'>): boolean {
  return isFinalized(state) && delivered > 0;
}

/** The number of rows without an outcome; it must be 0 at the end. */
export function countPending(run: Pick<Run, 'rows' | 'counts'>): number {
  return run.rows - sumOutcomes(run.counts);
}

/** The deleting time so far in ms, without pauses and without time in which no process worked on the run. `now`: ms since 1970. */
export function sumActiveMs({ activeMs, activeUntil }: Pick<Run, 'activeMs' | 'activeUntil'>, now: number): number {
  const sinceMs = activeUntil > 0 ? Math.max(0, now - activeUntil) : 0;
  return activeMs + (sinceMs > maxSilenceMs ? 0 : sinceMs);
}

/**
 * Reads a run; null if Redis doesn't know it (never made, removed, or expired). The id names a folder, so an id that could lead elsewhere belongs to
 * no run, even if Redis holds it.
 */
export async function readRun(redis: RedisClient, id: string): Promise<Run | null> {
  if (!/^[\w-]+$/.test(id)) return null;
  const hash = await redis.hgetall(keys.run(id));
  return hash.state === undefined ? null : parseRun(id, hash);
}

/** Reads this run as it is now. Throws INTERNAL if Redis no longer has it. */
export async function readRunAgain(redis: RedisClient, id: string): Promise<Run> {
  const run = await readRun(redis, id);
  if (run === null) throw new ExpungeError('INTERNAL', `run ${id} is no longer in Redis`);
  return run;
}

/** Parses the run in a Redis hash; missing fields read as 0, '' or null. Pure. */
export function parseRun(id: string, hash: Record<string, string>): Run {
  const number = (field: string) => Number(hash[field] ?? 0);
  const text = (field: string) => hash[field] ?? '';
  return {
    ...parseRules(hash),
    id,
    schema: number('schema'),
    state: text('state') as RunState,
    reason: text('reason'),
    by: text('by') as Run['by'],
    who: text('who'),
    pauses: JSON.parse(text('pauses') || '[]'),
    cancelBy: text('cancelBy'),
    createdBy: text('createdBy'),
    halt: text('halt') as Run['halt'],
    baseUrl: text('baseUrl'),
    account: text('account'),
    fp: text('fp'),
    detached: text('detached') === '1',
    command: text('command'),
    files: readableFiles(text('files')),
    sha256: text('sha256'),
    list: text('list'),
    definitions: text('definitions'),
    misfit: hash.misfit ? JSON.parse(hash.misfit) : null,
    note: text('note'),
    rehearsalOf: text('rehearsalOf'),
    retryOf: text('retryOf'),
    retriedBy: text('retriedBy').split(' ').filter(Boolean),
    plan: text('plan'),
    approver: text('approver'),
    planChanged: text('planChanged'),
    unreadRate: readableRate(text('rate')) === null ? text('rate') : '',
    quotaUntil: number('quotaUntil'),
    nextPermitAt: number('tat'),
    acceptedAt: number('acceptedAt'),
    minGraceMs: number('minGraceMs'),
    startsAt: number('startsAt'),
    closedUntil: number('closedUntil'),
    canary: text('canary'),
    sendable: text('sendable'),
    doubt: text('doubt'),
    doubtSince: number('doubtSince'),
    rows: number('rows'),
    ids: number('ids'),
    chunks: number('chunks'),
    blocks: number('blocks'),
    next: number('next'),
    settled: number('settled'),
    attempts: number('attempts'),
    late: number('late'),
    bodies: number('bodies'),
    counts: perOutcome((outcome: Exclude<Outcome, keyof Run>) => number(outcome)), // no outcome has the name of another field
    protectedRead: hash.protectedRead ? Number(hash.protectedRead) : null,
    createdAt: number('createdAt'),
    startedAt: number('startedAt'),
    endedAt: number('endedAt'),
    changedAt: number('changedAt'),
    changes: number('changes'),
    revision: number('changes') + number('edits'),
    published: number('published'),
    activeUntil: number('activeUntil'),
    activeMs: number('activeMs'),
    tallied: text('tallied') === '1',
    delivered: number('delivered'),
    reportIn: text('reportIn'),
    isExpiring: text('isExpiring') === '1',
    resultsWanted: text('resultsWanted') === '1',
    resultsOf: text('resultsOf'),
    resultsAt: number('resultsAt'),
    resultsIn: text('resultsIn'),
    resultsBy: text('resultsBy'),
    resultsProblem: text('resultsProblem'),
    verified: hash.verified ? JSON.parse(hash.verified) : null,
  };
}

/** The files of a run. Empty if another version wrote them in another form: lists show its runs, too. */
function readableFiles(text: string): string[] {
  try {
    return JSON.parse(text || '[]');
  } catch {
    return [];
  }
}

/** Writes fields of a run, unless the run is gone. Repeating it changes nothing. */
export async function setFields(
  redis: RedisClient,
  id: string,
  fields: Record<string, string | number>,
): Promise<void> {
  await redis.eval(setFieldsLua, 1, keys.run(id), ...Object.entries(fields).flat());
}

// KEYS 1 run  ARGV fields and values
const setFieldsLua = `if redis.call('EXISTS', KEYS[1]) == 1 then redis.call('HSET', KEYS[1], unpack(ARGV)) end`;

const letters = 'abcdefghjkmnpqrstuvwxyz23456789'; // without letters and digits that look alike

/** Makes a run id that people can read aloud: `20261120-1549-k7qd`. It sorts by time and is valid in a job id. `now`: ms since 1970. */
export function newRunId(now: number): string {
  const stamp = new Date(now).toISOString().replaceAll('-', '').replace('T', '-').replace(':', '').slice(0, 13);
  const tail = Array.from({ length: 4 }, () => letters[randomInt(letters.length)]).join('');
  return `${stamp}-${tail}`;
}

/** Finds the run with this id, or the only run whose id begins or ends with the text. Throws USAGE if there is none, or several. */
export async function findRunId(redis: RedisClient, text: string, reach: Reach = null): Promise<string> {
  const all = await redis.zrevrange(keys.runs, 0, -1);
  const named = all.includes(text)
    ? [text]
    : all.filter((id) => text !== '' && (id.startsWith(text) || id.endsWith(text)));
  const matches = reach === null ? named : await withinReach(redis, named, reach);
  if (matches.length === 1) return matches[0]!;
  const next: Advice = (toType) => `${toType('runs')} lists them`;
  if (matches.length === 0) throw new ExpungeError('USAGE', `no run is called "${text}"`, { next });
  throw new ExpungeError(
    'USAGE',
    `"${text}" fits ${matches.length} runs, among them ${matches.slice(0, 3).join(', ')}`,
    { next },
  );
}

async function withinReach(redis: RedisClient, ids: readonly string[], reach: Reach): Promise<string[]> {
  const places = await Promise.all(ids.map((id) => redis.hmget(keys.run(id), 'baseUrl', 'account')));
  return ids.filter((_, i) => isWithin(reach, { baseUrl: places[i]![0] ?? '', account: places[i]![1] ?? '' }));
}
