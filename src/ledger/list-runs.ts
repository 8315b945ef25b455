import { normalize } from 'node:path';
import { hasLabels } from '../model/labels.ts';
import { isFailure, outcomes, sumOutcomes } from '../model/outcome.ts';
import { stdinName } from '../model/row.ts';
import { isWithin, type Reach, type Target, targetOf } from '../model/target.ts';
import type { RedisClient } from '../redis/client.ts';
import { keys } from '../redis/keys.ts';
import { removeRemains } from './end-run.ts';
import { countPending, isFinalized, parseRun, type Run, type RunState, runStates, schemaVersion } from './run.ts';

const runsAtOnce = 1_000;

/** The fields that a list reads for each run. With ten thousand runs, reading whole records would take too long. */
const listed = [
  ...([
    'state',
    'reason',
    'by',
    'who',
    'halt',
    'baseUrl',
    'account',
    'createdBy',
    'files',
    'note',
    'labels',
    'rehearsalOf',
    'retryOf',
    'retriedBy',
    'rows',
    'ids',
    'settled',
    'attempts',
    'bodies',
    'detached',
    'tallied',
    'expectAbsent',
    'isExpiring',
    'resultsWanted',
    'resultsOf',
    'resultsIn',
    'resultsBy',
    'resultsProblem',
    'verified',
    'command',
    'window',
    'startsAt',
    'startAt',
    'rate',
    'quotaUntil',
    'misfit',
    'definitions',
  ] as const),
  ...(['createdAt', 'startedAt', 'endedAt', 'changedAt', 'activeUntil', 'activeMs', 'protectedRead'] as const),
];

/** A run as a list shows it. */
export type ListedRun = Pick<
  Run,
  (typeof listed)[number] | 'id' | 'counts' | 'revision' | 'unreadRate' | 'nextPermitAt'
>;

/**
 * Finds unfinished runs of the same target whose list shares a file name with this one (stdin never counts), or that retry ids of the same run. Only
 * reads.
 */
export async function findOverlappingRuns(
  redis: RedisClient,
  target: Target,
  { files }: { files: readonly string[] },
  retryOf = '',
): Promise<ListedRun[]> {
  const names = new Set(files.filter((name) => name !== stdinName).map((name) => normalize(name)));
  const isOverlapping = (run: ListedRun) =>
    !isFinalized(run.state) &&
    isAgainst(run, target) &&
    ((retryOf !== '' && run.retryOf === retryOf) || run.files.some((name) => names.has(normalize(name))));
  const found: ListedRun[] = [];
  for await (const page of runPages(redis, 0, readPage)) found.push(...page.filter(isOverlapping));
  return found;
}

/** Reads the runs of a target, newest first, in pages. */
export async function* runsOfTarget(redis: RedisClient, target: Target): AsyncGenerator<ListedRun[]> {
  for await (const page of runPages(redis)) yield page.filter((run) => isAgainst(run, target));
}

/** Reads the runs of a target that have not ended, newest first. */
export function listOpenRuns(redis: RedisClient, target: Target, limit: number): Promise<ChosenRuns> {
  const states = runStates.filter((state) => !isFinalized(state));
  return chooseFrom(runsOfTarget(redis, target), { states, sort: 'created', limit });
}

/** Removes expired runs among the oldest thousand from the registry. Each new run does this, so that the registry stays bounded. */
export async function forgetExpired(redis: RedisClient): Promise<void> {
  const oldest = await redis.zrange(keys.runs, '0', String(runsAtOnce - 1));
  const states = await readStates(redis, oldest);
  await forget(
    redis,
    oldest.filter((_, i) => states[i] === null),
  );
}

/** Forgets expired runs. Their names are removed last, because they lead to the other keys. */
async function forget(redis: RedisClient, gone: string[]): Promise<void> {
  for (const id of gone) await removeRemains(redis, id);
  if (gone.length > 0) await redis.zrem(keys.runs, ...gone);
}

/** Whether any run is in one of these states. */
export async function isAnyRun(redis: RedisClient, states: readonly RunState[]): Promise<boolean> {
  const ids = await redis.zrevrange(keys.runs, 0, -1);
  for (let from = 0; from < ids.length; from += runsAtOnce) {
    const found = await readStates(redis, ids.slice(from, from + runsAtOnce));
    if (found.some((state) => states.includes(state as RunState))) return true;
  }
  return false;
}

/** Whether no run is running or being cancelled. */
export async function isIdle(redis: RedisClient): Promise<boolean> {
  return !(await isAnyRun(redis, ['running', 'cancelling']));
}

/** Reads the detached runs of a target that are running and were written by this version. Runs that cannot be read now are left out. */
export async function readRunning(redis: RedisClient, fp: string): Promise<string[]> {
  const ids = await redis.smembers(keys.targetRuns(fp));
  const found = await Promise.all(ids.map((id) => redis.hmget(keys.run(id), 'state', 'schema').catch(() => [])));
  return ids.filter((_, i) => found[i]![0] === 'running' && found[i]![1] === String(schemaVersion));
}

const waitingStates: readonly (string | null)[] = ['preparing', 'planned', 'paused', 'halted', null];

/** Whether a detached run of a target needs its workers: this version wrote it, and it does not wait for a person. */
export async function needsWorkers(redis: RedisClient, fp: string): Promise<boolean> {
  const ids = await redis.smembers(keys.targetRuns(fp));
  const found = await Promise.all(ids.map((id) => redis.hmget(keys.run(id), 'state', 'schema')));
  return found.some(([state = null, schema]) => !waitingStates.includes(state) && schema === String(schemaVersion));
}

/** The runs made at `since` (ms since 1970) or later, newest first, in pages of a thousand. Each page takes one round trip. */
async function* runPages(redis: RedisClient, since = 0, read = readListed): AsyncGenerator<ListedRun[]> {
  const ids = await redis.zrevrangebyscore(keys.runs, '+inf', since);
  for (let from = 0; from < ids.length; from += runsAtOnce) yield await read(redis, ids.slice(from, from + runsAtOnce));
}

/** The states, parallel to `ids`; null for a run that has expired. */
function readStates(redis: RedisClient, ids: readonly string[]): Promise<(string | null)[]> {
  return Promise.all(ids.map((id) => redis.hget(keys.run(id), 'state')));
}

/** Reads these runs as a list shows them, without expired runs. Removes the remaining keys of expired runs. */
export async function readListed(redis: RedisClient, page: readonly string[]): Promise<ListedRun[]> {
  const runs = await readPage(redis, page);
  const known = new Set(runs.map(({ id }) => id));
  await forget(
    redis,
    page.filter((id) => !known.has(id)),
  );
  return runs;
}

/** The same, but removes nothing. */
async function readPage(redis: RedisClient, page: readonly string[]): Promise<ListedRun[]> {
  const replies = await Promise.all(page.map((id) => redis.hmget(keys.run(id), ...fields)));
  return page.map((id, i) => listedRun(id, replies[i]!)).filter((run) => run !== null);
}

function isAgainst({ baseUrl, account }: ListedRun, target: Target): boolean {
  return baseUrl === target.baseUrl && account === target.account;
}

const fields = [...listed, 'changes', 'edits', 'tat', ...outcomes];

function listedRun(id: string, values: (string | null)[]): ListedRun | null {
  const hash: Record<string, string> = {};
  for (const [i, value] of values.entries()) if (value !== null) hash[fields[i]!] = value;
  return hash.state === undefined ? null : parseRun(id, hash);
}

/** What a run has to be to be shown. A missing part accepts every run. */
type RunFilter = {
  states?: readonly RunState[] | undefined;
  target?: string | undefined; // its fingerprint, or a part of its base URL or account
  list?: string | undefined; // a part of a file's name
  by?: string | undefined; // a part of the submitter's name
  label?: string | undefined; // labels that it has, in normal form
  text?: string | undefined; // a part of the id, of a file's name, of the submitter, or of why the run was submitted or is in its state
  reach?: Reach | undefined;
};

/** The choice of runs to show, and their order. */
export type RunChoice = Omit<RunFilter, 'text' | 'reach'> & {
  since?: number | undefined; // made at this time or later; ms since 1970
  sort: RunOrder; // newest or largest first
  limit: number;
};

/** `hasMore`: more runs match than `limit`. */
export type ChosenRuns = { runs: ListedRun[]; hasMore: boolean };

const orders = {
  created: null, // the order of the registry
  changed: (run: ListedRun) => Math.max(run.changedAt, run.endedAt, run.createdAt),
  rows: (run: ListedRun) => run.rows,
  pending: countPending,
  failed: (run: ListedRun) => sumOutcomes(run.counts, isFailure),
} satisfies Record<string, ((run: ListedRun) => number) | null>;

type RunOrder = keyof typeof orders;
export const runOrders = Object.keys(orders) as RunOrder[];

/** Reads the runs that match, at most `limit`. */
export function chooseRuns(redis: RedisClient, choice: RunChoice): Promise<ChosenRuns> {
  return chooseFrom(runPages(redis, choice.since), choice);
}

/** The same for pages of runs, newest first. In the order of creation, it stops reading once it has enough. */
export async function chooseFrom(pages: AsyncIterable<ListedRun[]>, choice: RunChoice): Promise<ChosenRuns> {
  const measure = orders[choice.sort];
  const runs: ListedRun[] = [];
  for await (const page of pages) {
    for (const run of page) if (fits(run, choice)) runs.push(run);
    if (measure === null && runs.length > choice.limit) break;
  }
  if (measure !== null) runs.sort((a, b) => measure(b) - measure(a));
  return { runs: runs.slice(0, choice.limit), hasMore: runs.length > choice.limit };
}

function fits(run: ListedRun, { states, target, list, by, label, text, reach = null }: RunFilter): boolean {
  if (!isWithin(reach, run)) return false;
  if (states !== undefined && !states.includes(run.state)) return false;
  if (target !== undefined && !isOfTarget(run, target)) return false;
  if (list !== undefined && !run.files.some((file) => holds(file, list))) return false;
  if (by !== undefined && !holds(run.createdBy, by)) return false;
  if (label !== undefined && !hasLabels(run.labels, label)) return false;
  const words = [run.id, run.createdBy, run.note, run.labels, run.reason, ...run.files];
  return text === undefined || words.some((word) => holds(word, text));
}

function isOfTarget({ baseUrl, account }: ListedRun, target: string): boolean {
  if (/^[0-9a-f]{16}$/.test(target)) return targetOf(baseUrl, account).fp === target;
  return holds(`${baseUrl} ${account}`, target);
}

function holds(text: string, part: string): boolean {
  return text.toLowerCase().includes(part.toLowerCase());
}

/** The end of a page of runs: the last run that was examined. */
export type RunCursor = { at: number; id: string };

/** The orders of pages, newest first: by when runs were made, or by when they ended. The second leaves out runs that have not ended. */
export const pageOrders = ['created', 'ended'] as const;

/** The runs that a page may hold. */
type PageChoice = RunFilter & { sort: (typeof pageOrders)[number]; limit: number };

const maxLooked = 20_000;

/** Reads the runs that match, newest first, starting after `after`. `next`: the start of the next page, null = it is the last page. */
export async function pageOfRuns(
  redis: RedisClient,
  choice: PageChoice,
  after: RunCursor | null,
): Promise<{ runs: ListedRun[]; next: RunCursor | null }> {
  const entries = await (choice.sort === 'ended' ? endedAfter(redis, after) : entriesAfter(redis, after));
  const runs: ListedRun[] = [];
  for (let from = 0; from < entries.length; ) {
    const wanted = isNarrow(choice) ? runsAtOnce : Math.max(1, choice.limit - runs.length);
    const part = entries.slice(from, from + wanted);
    const ids = await fittingOf(redis, part, choice);
    const found = new Map((await readListed(redis, ids)).map((run) => [run.id, run]));
    for (const [i, entry] of part.entries()) {
      const run = found.get(entry.id);
      if (run !== undefined) runs.push(run);
      const looked = from + i + 1;
      if (runs.length === choice.limit || looked >= maxLooked)
        return { runs, next: looked < entries.length ? entry : null };
    }
    from += part.length;
  }
  return { runs, next: null };
}

/** All entries of the registry that come after this one, newest first. Entries with the same time are in descending order of id. */
async function entriesAfter(redis: RedisClient, after: RunCursor | null): Promise<RunCursor[]> {
  const flat = await redis.zrevrangebyscore(keys.runs, after?.at ?? '+inf', '-inf', 'WITHSCORES');
  const entries: RunCursor[] = [];
  for (let i = 0; i < flat.length; i += 2) entries.push({ id: flat[i]!, at: Number(flat[i + 1]) });
  if (after === null) return entries;
  return entries.filter(({ at, id }) => at < after.at || id < after.id);
}

/** The same for the runs that have ended, by their end. */
async function endedAfter(redis: RedisClient, after: RunCursor | null): Promise<RunCursor[]> {
  const ids = await redis.zrevrange(keys.runs, 0, -1);
  const entries: RunCursor[] = [];
  for (let from = 0; from < ids.length; from += runsAtOnce) {
    const part = ids.slice(from, from + runsAtOnce);
    const ends = await Promise.all(part.map((id) => redis.hmget(keys.run(id), 'state', 'endedAt')));
    for (const [i, id] of part.entries()) {
      const [state, endedAt] = ends[i]!;
      if (isFinalized(state as RunState)) entries.push({ id, at: Number(endedAt ?? 0) });
    }
  }
  const isAfter = ({ at, id }: RunCursor) => after === null || at < after.at || (at === after.at && id < after.id);
  return entries.filter(isAfter).sort((a, b) => b.at - a.at || (a.id < b.id ? 1 : -1));
}

/** The ids of the matching runs. Reads only the few fields that decide, as few of ten thousand runs may match. */
async function fittingOf(redis: RedisClient, part: readonly RunCursor[], choice: PageChoice): Promise<string[]> {
  const ids = part.map(({ id }) => id);
  if (!isNarrow(choice)) return ids;
  const replies = await Promise.all(ids.map((id) => redis.hmget(keys.run(id), ...compared)));
  return ids.filter((id, i) => {
    const hash = Object.fromEntries(compared.map((field, n) => [field, replies[i]![n] ?? '']));
    return hash.state !== '' && fits(parseRun(id, hash), choice);
  });
}

const compared = ['state', 'baseUrl', 'account', 'createdBy', 'files', 'note', 'labels', 'reason'] as const;

function isNarrow({ sort, limit, ...filter }: PageChoice): boolean {
  return Object.values(filter).some((part) => part !== undefined && part !== null);
}
