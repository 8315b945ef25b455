import type { Config } from '../config/settings.ts';
import { ExpungeError } from '../errors.ts';
import { countSettledRows, readChunks } from '../input/chunk-ids.ts';
import { adviceOnOdd, explainOdd } from '../input/id-shapes.ts';
import { defaultColumn, detectFormat } from '../input/input-options.ts';
import { explainNearMiss, explainUnmatched, type ProtectFacts } from '../input/read-protected.ts';
import type { Spool } from '../input/spool.ts';
import type { List } from '../input/with-list.ts';
import { rungsLeft } from '../ledger/create-run.ts';
import type { ListedRun } from '../ledger/list-runs.ts';
import { countPending, isFinalized, parseRun, type Run } from '../ledger/run.ts';
import { givenRules, isSet, noRules, type RuleName, type RunRules, ruleNames } from '../ledger/run-rules.ts';
import { type Reading, seenFromOutside } from '../ledger/standing.ts';
import { explainEmptyList, explainExcess, unexpectedCount } from '../model/brakes.ts';
import { idPath } from '../model/check-id.ts';
import { forecast } from '../model/forecast.ts';
import { definitionsOf, describeNeverRepeated, describeSuccess, sumIds, usedResources } from '../model/resource.ts';
import { stdinName } from '../model/row.ts';
import type { Target } from '../model/target.ts';
import { filesText, type Plan } from '../terminal/plan-text.ts';
import { tokenSource } from '../token/open-token.ts';
import { countRequests, findStart, toWork } from './forecast-list.ts';
import type { ListAction, RunOptions } from './list-action.ts';
import { noBounds, type Surroundings, type TargetBounds } from './read-bounds.ts';
import type { Retries } from './retried-run.ts';

/** What Redis knows about a list: the run to resume, the last run, unfinished runs of the same files, and the state of the target. */
export type ListHistory = Pick<Plan, 'proof'> & {
  around: Surroundings | null; // surroundings of the target; null if Redis was not asked
  bounds: TargetBounds;
  retries: Retries | null;
  existing: Run | null;
  nextTryAt: number | null; // when the failed ids of the run to resume are retried, if nothing else is left to do
  isJoined: boolean;
  last: Run | null;
  overlapping: readonly ListedRun[];
};

/** The history for a plan that is made without Redis. */
export const noListHistory: ListHistory = {
  retries: null,
  bounds: noBounds,
  around: null,
  proof: [],
  existing: null,
  nextTryAt: null,
  isJoined: false,
  last: null,
  overlapping: [],
};

/** The plan of a run of the list, shown before anything is sent. Reads only the list and what is on this machine. */
export function makeListPlan(action: ListAction, target: Target, list: List, known: ListHistory): Plan {
  const { config, env } = action;
  const { spool, rejectsFile, openEnd } = list;
  const { first } = spool;
  const used = definitionsOf(usedResources(spool.ids));
  const { retries, bounds, around, proof, existing, nextTryAt, isJoined, last, overlapping } = known;
  const lastId = retries === null && spool.files.length === 1 ? (spool.last?.id ?? null) : null;
  const { rules, kept } = rulesOf(action, existing);
  const requests = existing === null ? countRequests(list, rules) : countPending(existing);
  const [minGraceMs, acceptedAt] =
    existing === null || existing.acceptedAt === 0
      ? [bounds.minGrace?.ms ?? 0, Date.now()]
      : [existing.minGraceMs, existing.acceptedAt];
  const work = toWork({ requests, rules, startsAt: findStart(rules, minGraceMs, acceptedAt) }, bounds);
  return {
    ...rules,
    kept,
    files: spool.files,
    retries: retries && retriesOf(retries, existing),
    rows: spool.rows,
    ids: spool.ids,
    samples: samplesOf(spool),
    shapes: spool.shapes,
    column:
      retries === null && hasColumns(spool.files, config) && !config.noHeader ? (config.column ?? defaultColumn) : null,
    rejected: spool.rejectedByCode,
    rejectsFile,
    settled: countSettledRows(spool),
    protectedRead: spool.protectedList?.ids ?? null,
    limited: spool.limited ? (config.limit ?? null) : null,
    baseUrl: target.baseUrl,
    account: target.account,
    tokenSource: tokenSource(config, env),
    firstUrl: first === null ? null : target.baseUrl + idPath(first.resource, first.id),
    lastId,
    endsWithoutNewline: openEnd !== null && openEnd === lastId,
    canary: existing === null ? (config.canary ?? []) : rungsLeft(existing),
    rateBefore: existing?.rate ?? null,
    learned: bounds.learned,
    limit: bounds.limit,
    redisMs: bounds.redisMs,
    minGrace: existing === null ? bounds.minGrace : null,
    work,
    forecast: forecast(work, Date.now()),
    maxConcurrency: config.maxConcurrency,
    seen: around && seenBy(action, target, { ...around, existing, nextTryAt, rules }),
    proof: [...describeSuccess(used, rules.onStatus), ...describeNeverRepeated(used), ...proof],
    existing: existing && { ...existingOf(existing), isJoined },
    previous: last !== null && isFinalized(last.state) ? previousOf(last) : null,
    overlapping: overlapping.map((run) => ({
      ...existingOf(run),
      files: run.files,
      protectedRead: run.protectedRead,
    })),
  };
}

/** What the run would see if it were running now. */
function seenBy(
  { options }: ListAction,
  target: Target,
  {
    existing,
    rules,
    ownStop,
    ...around
  }: Surroundings & Pick<ListHistory, 'existing' | 'nextTryAt'> & { rules: RunRules },
): Reading {
  const { baseUrl, account } = target;
  const run = {
    ...(existing ?? parseRun('RUN', {})),
    ...rules,
    startsAt: 0, // the plan has a line for its start
    state: 'running' as const,
    detached: options.detach === true,
  };
  const here = options.detach ? null : { stop: around.stops.target ?? ownStop, tokenWait: '' };
  return { ...seenFromOutside, now: Date.now(), target: { baseUrl, account }, ...around, run, here };
}

const shownSamples = 3;

/** The first ids that would be sent. */
function samplesOf(spool: Spool): string[] {
  for (const part of readChunks(spool, [shownSamples])) if ('ids' in part) return [...part.ids];
  return [];
}

function hasColumns(files: readonly string[], { format }: ListAction['config']): boolean {
  const formats = files.map((name) => detectFormat({ name, isStdin: name === stdinName }, format ?? null));
  return formats.some((used) => used !== 'lines');
}

function existingOf(run: ListedRun) {
  return { runId: run.id, state: run.state, reason: run.reason, left: countPending(run), who: run.who };
}

/**
 * The rules of the run once this command has set its own, and which rules only an earlier command set, which the user of this command may not expect.
 */
function rulesOf(action: ListAction, existing: Run | null): { rules: RunRules; kept: RuleName[] } {
  const given = givenRules(action);
  if (existing === null) return { rules: { ...noRules, ...given, graceMs: action.config.grace }, kept: [] };
  const before: Run = { ...existing, stopAt: stopAtOf(existing) };
  const merged = ruleNames.map((name) => [name, given[name] === undefined ? before[name] : given[name]]);
  return {
    rules: Object.fromEntries(merged) as RunRules,
    kept: ruleNames.filter((name) => given[name] === undefined && isSet(before, name)),
  };
}

/** When the run pauses once it continues; a stopped run ignores a time that has passed. */
function stopAtOf(existing: Run): number {
  const isStopped = existing.state === 'paused' || existing.state === 'halted';
  return isStopped && existing.stopAt <= Date.now() ? 0 : existing.stopAt;
}

/** The run whose ids are retried, without the retry that is resumed. */
function retriesOf({ run, chosen }: Retries, existing: Run | null): Plan['retries'] {
  return { runId: run.id, chosen, before: run.retriedBy.filter((id) => id !== existing?.id) };
}

function previousOf({ id, state, endedAt, counts }: Run): Plan['previous'] {
  return { runId: id, state, endedAt, counts };
}

type ListFacts = Pick<Spool, 'rows' | 'ids' | 'files' | 'nearMiss' | 'protected'>;

type ListBounds = {
  config: Pick<Config, 'maxDeletes' | 'expectCount' | 'expectProtected' | 'allowEmpty' | 'expectUnprotected'>;
  options: Pick<RunOptions, 'partial'>;
};

/**
 * Throws USAGE for a list with more ids than `--max-deletes` or without a row, and GUARD for another number of ids than `--expect-count` and for a
 * protected id that is written differently in the list: no question is asked, and nothing was sent. An unfinished run of the list counts all ids of
 * the list, including settled ones.
 */
export function checkList(
  { config, options }: ListBounds,
  { rows, ids, files, nearMiss, protected: kept }: ListFacts,
): void {
  checkMaxDeletes(sumIds(ids), config.maxDeletes, options.partial === true);
  checkExpectedCount(sumIds(ids), config.expectCount);
  checkExpectedProtection(kept, config.expectProtected);
  checkEmpty(rows, files, config.allowEmpty);
  if (nearMiss !== null && !config.expectUnprotected) throw unprotected(explainNearMiss(nearMiss));
}

/** Throws GUARD for a list that a person has to see in its plan, if no question is asked. */
export function checkUnseen(action: UnseenAction, facts: UnseenFacts): void {
  const error = action.isAsked ? null : whyToBeSeen(action, facts);
  if (error !== null) throw error;
}

/**
 * Why a person has to see the plan of a list before it is deleted: its protected ids may be the wrong ones, or in another form, or some of its ids look
 * like something else. Null if there is no reason.
 */
function whyToBeSeen({ config, sources }: UnseenAction, facts: UnseenFacts): ExpungeError | null {
  const isExpected = config.expectUnprotected || config.expectProtected !== undefined;
  // A file that a variable names is for all lists, so most of its ids are in others.
  const reason = isExpected ? null : explainUnmatched(facts, sources.protect === 'flag' ? 'each' : 'some');
  if (reason !== null) return unprotected(reason);
  const odd = config.allowMixedIds ? null : explainOdd(facts.shapes);
  if (odd === null) return null;
  return new ExpungeError('GUARD', `${odd}; nothing was sent`, { next: adviceOnOdd(facts.shapes) });
}

type UnseenAction = Pick<ListAction, 'config' | 'sources' | 'isAsked'>;
type UnseenFacts = ProtectFacts & Pick<Spool, 'shapes'>;

function unprotected(reason: string): ExpungeError {
  const next =
    'check that --protect names the right file, with ids of the same form; if that is right: --expect-unprotected, or with the number of protected rows --expect-protected';
  return new ExpungeError('GUARD', `${reason}; nothing was sent`, { next });
}

/** What a dry run warns of if the same command with --yes would be refused; '' = it would not be. */
export function dryRunWarning(action: UnseenAction, facts: UnseenFacts): string {
  const error = whyToBeSeen(action, facts);
  return error === null ? '' : `warning: with --yes the run is refused: ${error.message}\n  ${error.next}`;
}

function checkMaxDeletes(ids: number, maxDeletes: Config['maxDeletes'], isPartial: boolean): void {
  const reason = explainExcess(ids, { maxDeletes, isPartial });
  if (reason === null) return;
  const whole = `check the list; to delete all of it: --max-deletes ${ids}`;
  const part = `to send a part of it on purpose: --partial for the first ${maxDeletes} ids, or --limit ${maxDeletes}`;
  throw new ExpungeError('USAGE', `${reason}; nothing was sent`, { next: `${whole}\n${part}` });
}

function checkExpectedCount(ids: number, expected: string | undefined): void {
  const reason = expected === undefined ? null : unexpectedCount(expected, ids);
  if (reason === null) return;
  throw new ExpungeError('GUARD', `${reason}; nothing was sent`, {
    next: `check the list, and that the export behind it is whole; if it is right: --expect-count ${ids}`,
  });
}

function checkExpectedProtection(rows: number, expected: string | undefined): void {
  const reason =
    expected === undefined ? null : unexpectedCount(expected, rows, 'protected rows', '--expect-protected');
  if (reason === null) return;
  throw new ExpungeError('GUARD', `${reason}; nothing was sent`, {
    next: `check the list and the file of --protect; if they are right: --expect-protected ${rows}`,
  });
}

function checkEmpty(rows: number, files: readonly string[], allowEmpty: boolean): void {
  const reason = explainEmptyList(rows, { allowEmpty });
  if (reason === null) return;
  const isNormal = files.includes(stdinName)
    ? 'if an empty list is normal: set -o pipefail, so that a failed export still counts, and add --allow-empty'
    : 'if an empty list is normal, add --allow-empty';
  throw new ExpungeError('USAGE', `${filesText(files)}: ${reason}; nothing was sent`, {
    next: `see why the export wrote nothing; ${isNormal}`,
  });
}
