import { nextTime } from '../config/parse-setting.ts';
import { messageOf } from '../errors.ts';
import { isoTime } from '../format.ts';
import { chunkSizes, readTakenChunks } from '../input/chunk-ids.ts';
import type { Spool } from '../input/spool.ts';
import { claimList, planRun, writeRun } from '../ledger/create-run.ts';
import { removeIfUnstarted } from '../ledger/end-run.ts';
import { readMinGrace } from '../ledger/min-grace.ts';
import { refuseUnprotected } from '../ledger/protection.ts';
import { noteRetry } from '../ledger/retries.ts';
import { isFinalized, type Run, readRun } from '../ledger/run.ts';
import { pausedEvent, refusedEvent } from '../notify/events.ts';
import { startDetachedRun } from '../queue/enqueuer.ts';
import { isRedisError } from '../redis/errors.ts';
import { keys } from '../redis/keys.ts';
import { writeCarriedOver } from './carried-over.ts';
import { findRejection, type ListRejection, protectedChange, withRows } from './guards.ts';
import type { ScheduleLease } from './lease.ts';
import { extendHistory } from './occurrence-history.ts';
import { type OccurrenceList, withOccurrenceList } from './occurrence-list.ts';
import { type HistoryEntry, parseStoredSettings, type Schedule, stopAtWithZone } from './schedule.ts';
import {
  type GuardPause,
  readSchedule,
  type ScheduleDeps,
  type ScheduleUpdate,
  updateSchedule,
} from './schedule-store.ts';

/** The result of making a run for an occurrence. `void`: another process makes it, or the schedule is no longer active. */
export type MakeRunResult =
  | { outcome: 'started'; run: string; rows: number; ids: number; retried: number; carriedOver: number; reason: string }
  | { outcome: 'refused'; refusal: ListRejection }
  | { outcome: 'empty' | 'failed' | 'skipped'; reason: string }
  | { outcome: 'void' };

/** An occurrence, and whether an operator requested the run. In that case the schedule may be paused, and a rejection does not pause it. */
type Trigger = { occurrence: number; isManual: boolean };

/**
 * Makes the run of an occurrence: reads the list, evaluates the guards, writes the run, and starts it if the occurrence has no run yet. The history
 * records the result. Throws errors of Redis; then nothing was started, or the schedule knows the started run. Repeating it makes no second run for
 * an occurrence.
 */
export async function makeRun(
  deps: ScheduleDeps,
  lease: ScheduleLease,
  schedule: Schedule,
  trigger: Trigger,
): Promise<MakeRunResult> {
  try {
    return await withOccurrenceList(deps, schedule, lease.signal, (list) =>
      makeFromList(deps, lease, schedule, trigger, list),
    );
  } catch (error) {
    if (lease.signal.aborted) return { outcome: 'void' };
    if (isRedisError(error)) throw error;
    return recordResult(deps, lease, trigger, { outcome: 'failed', reason: messageOf(error) });
  }
}

async function makeFromList(
  deps: ScheduleDeps,
  lease: ScheduleLease,
  schedule: Schedule,
  trigger: Trigger,
  list: OccurrenceList,
): Promise<MakeRunResult> {
  const { refusal, nothing } = evaluateList(list, schedule);
  if (refusal !== null) return rejectList(deps, lease, trigger, refusal, list.facts.rows);
  if (nothing !== '') {
    const reason = [nothing, list.note].filter(Boolean).join('; ');
    // An occurrence that leaves out ids of earlier occurrences has not gone well.
    const fields = list.note === '' ? { heartbeatDue: deps.now() } : {};
    return recordResult(deps, lease, trigger, { outcome: 'empty', reason }, null, { fields });
  }
  return start(deps, lease, schedule, trigger, list);
}

/** Why a list does not become a run: the guard that rejects it, or `nothing` to do. Both are empty for a list to delete. */
export function evaluateList(
  { source: { nothing }, facts, spool }: OccurrenceList,
  schedule: Schedule,
): { refusal: ListRejection | null; nothing: string } {
  if (nothing !== '' && facts.left === 0) return { refusal: null, nothing };
  const refusal = findRejection(facts, schedule, nothing === '');
  return { refusal, nothing: refusal === null && spool.rows === 0 ? 'the list is empty' : '' };
}

async function rejectList(
  deps: ScheduleDeps,
  lease: ScheduleLease,
  trigger: Trigger,
  refusal: ListRejection,
  rows: number,
): Promise<MakeRunResult> {
  const { guard, reason } = refusal;
  const event = refusedEvent(
    { target: deps.target, name: lease.name, at: deps.now(), reason },
    trigger.occurrence,
    guard,
  );
  // In one update, so that a process that dies leaves no refused list with an active schedule.
  const pause = trigger.isManual ? null : pauseBy(deps, lease, { guard, halt: '', reason });
  const result = await recordResult(deps, lease, trigger, { outcome: 'refused', refusal }, rows, { event, pause });
  if (pause !== null && result.outcome !== 'void') logPause(deps, lease, pause);
  return result;
}

/** Pauses a schedule as a guard, without recording the process that reconciles. Repeating it changes nothing. */
export async function pauseAs(deps: ScheduleDeps, lease: ScheduleLease, grounds: Grounds): Promise<void> {
  const pause = pauseBy(deps, lease, grounds);
  if ((await updateSchedule(deps.ledger.redis, lease, { pause })) === 'done') logPause(deps, lease, pause);
}

/** Why a guard pauses a schedule. */
type Grounds = Pick<GuardPause, 'guard' | 'halt' | 'reason'>;

function pauseBy({ target, now }: ScheduleDeps, { name }: ScheduleLease, { guard, halt, reason }: Grounds): GuardPause {
  const at = now();
  return { guard, halt, at, reason, event: pausedEvent({ target, name, at, reason }, guard, '') };
}

function logPause({ log }: ScheduleDeps, { name }: ScheduleLease, { guard, reason }: GuardPause): void {
  log.warn({ schedule: name, guard, reason }, 'schedule paused');
}

/** Writes the run, and starts it once it is recorded as the run of its occurrence. */
async function start(
  deps: ScheduleDeps,
  lease: ScheduleLease,
  schedule: Schedule,
  trigger: Trigger,
  list: OccurrenceList,
): Promise<MakeRunResult> {
  const { spool, retried } = list;
  const { ledger, target, who } = deps;
  // The file of the schedule may differ from a worker's file, and ids of earlier occurrences may have been protected since.
  await refuseUnprotected(ledger.redis, target.fp, { isProtected: true, ids: takenIds(spool) });
  const settings = settingsForRun(schedule, list);
  const { note: why } = schedule;
  const origin = {
    note: deps.reason || why,
    retryOf: retried.of,
    mayBeGone: retried.mayBeGone,
    options: await optionsOf(deps, schedule, settings.grace),
    detached: true,
    who: `${creatorPrefix(schedule.name)}${who}`,
    command: '',
  };
  const plan = planRun(settings, target, spool, origin);
  // An ended run of the same list whose report is not delivered must not block the occurrence.
  const id = await claimList(ledger.redis, plan.list, deps.now(), ({ state }) => isFinalized(state));
  if ((await readRun(ledger.redis, id)) !== null) {
    return recordResult(deps, lease, trigger, {
      outcome: 'skipped',
      reason: `run ${id} is deleting the same list`,
    });
  }
  if ((await updateSchedule(ledger.redis, lease, { fields: { preparing: id } })) !== 'done') return { outcome: 'void' };
  await deps.onRun?.(id);
  await writeRun(ledger.redis, id, plan, readTakenChunks(spool, chunkSizes(settings.canary)), deps.now(), () =>
    lease.signal.throwIfAborted(),
  );
  const carriedOver = list.carriedOver === 0 ? null : await writeCarriedOver(ledger.redis, lease, id, spool);
  const reason = [protectedChange(list.facts, schedule), list.note].filter(Boolean).join('; ');
  const counts = { rows: spool.rows, ids: plan.ids, retried: retried.ids, carriedOver: list.carriedOver };
  const result = { outcome: 'started', run: id, ...counts, reason } as const;
  const written = (await readRun(ledger.redis, id))!;
  const done = await recordOccurrence(deps, lease, trigger, result, spool.rows, {
    claim: { occurrence: trigger.occurrence, run: id, carriedOver },
    fields: {
      preparing: '',
      lastRun: id,
      lastState: '',
      lastConclusion: '',
      waived: '',
      ...fieldsOfList(list, schedule, id),
    },
  });
  if (done !== 'done') {
    if (done !== 'lost' || !(await isOfOther(deps, lease, id)))
      await removeIfUnstarted(ledger.redis, written, creatorPrefix(schedule.name));
    return { outcome: 'void' };
  }
  const occurrence = isoTime(trigger.occurrence);
  const left = {
    ...(retried.ids > 0 && { retried: retried.ids }),
    ...(carriedOver && { carriedOver: carriedOver.ids }),
  };
  const facts = {
    schedule: schedule.name,
    run: id,
    rows: spool.rows,
    occurrence,
    ...left,
    ...(reason !== '' && { reason }),
  };
  deps.log.info(facts, 'scheduled run started');
  await linkRetried(deps, written);
  await startDetachedRun(ledger, deps.enqueuer, written, { who: plan.who, reason: '' });
  return result;
}

/** The rules of a run that are not settings. Its time of day for a pause is the next one after its start. */
async function optionsOf(
  { ledger: { redis }, target, now }: ScheduleDeps,
  { tz, maxActiveMs, stopAt }: Schedule,
  graceMs: number,
): Promise<Record<string, unknown>> {
  const minGraceMs = (await readMinGrace(redis, target.fp))?.ms ?? 0;
  const startsAt = now() + Math.max(graceMs, minGraceMs);
  return {
    ...(maxActiveMs > 0 && { maxDuration: maxActiveMs }),
    ...(stopAt !== '' && { stopAt: nextTime(stopAtWithZone(stopAt, tz), startsAt) }),
  };
}

/** The ids that the run of an occurrence sends. */
async function* takenIds(spool: Spool): AsyncGenerator<readonly string[]> {
  for await (const part of readTakenChunks(spool, chunkSizes())) if ('ids' in part) yield part.ids;
}

/** The start of `createdBy` in the runs of a schedule. An operator who makes a run of the same list gets a run with the same id. */
export function creatorPrefix(schedule: string): string {
  return `schedule ${schedule} on `;
}

/**
 * Whether the process that holds the lease now makes or has made this same run. The list is the same, and this process may have hung before it wrote
 * the record.
 */
async function isOfOther(
  { ledger: { redis } }: ScheduleDeps,
  { fp, name }: ScheduleLease,
  id: string,
): Promise<boolean> {
  const schedule = await readSchedule(redis, fp, name);
  if (schedule?.lastRun === id) return true;
  // If no process holds the lease, this process wrote `preparing`.
  return schedule?.preparing === id && (await redis.exists(keys.scheduleLease(fp, name))) === 1;
}

/**
 * The settings of the run. If the last run may have deleted most of the ids, they are expected to be gone. A few such ids must not switch the guard
 * off for a whole list.
 */
function settingsForRun(schedule: Schedule, { facts, retried }: OccurrenceList) {
  const settings = parseStoredSettings(schedule);
  return { ...settings, expectAbsent: settings.expectAbsent || 2 * retried.mayBeGone > facts.sends };
}

/** The fields that the schedule keeps about the list of a run. */
function fieldsOfList(
  { source, isRepeated, retried }: OccurrenceList,
  schedule: Schedule,
  run: string,
): ScheduleUpdate['fields'] {
  const { spool, read, nothing } = source;
  const { protectedList, rows, sha256 } = spool;
  const isNew = nothing === '' && !isRepeated;
  // If a list is not part of this run, its files are done only if this run sends again all ids that the last run left of them.
  const isToArchive = read.length > 0 && (!isRepeated || (schedule.retryFailed && spool.rejected === 0));
  return {
    ...(isNew && { lastSha256: sha256, rows: JSON.stringify(withRows(schedule.rows, rows)) }),
    protectedList: protectedList === null ? '' : JSON.stringify(protectedList),
    retriedFrom: retried.ids > 0 ? JSON.stringify({ run, file: retried.file }) : '',
    toArchive: isToArchive ? JSON.stringify({ run, files: read }) : '',
  };
}

async function recordResult(
  deps: ScheduleDeps,
  lease: ScheduleLease,
  trigger: Trigger,
  result: MakeRunResult,
  rows: number | null = null,
  update: ScheduleUpdate = {},
): Promise<MakeRunResult> {
  const done = await recordOccurrence(deps, lease, trigger, result, rows, update);
  if (done !== 'done') return { outcome: 'void' };
  if (result.outcome === 'failed')
    deps.log.warn({ schedule: lease.name, reason: result.reason }, 'no run was made for an occurrence');
  return result;
}

async function recordOccurrence(
  deps: ScheduleDeps,
  lease: ScheduleLease,
  { occurrence, isManual }: Trigger,
  result: MakeRunResult,
  rows: number | null,
  { fields, ...settlement }: ScheduleUpdate,
): ReturnType<typeof updateSchedule> {
  if (result.outcome === 'void') return 'stopped';
  const entry: HistoryEntry = {
    occurrence,
    occurrences: 1,
    at: deps.now(),
    outcome: result.outcome,
    reason: reasonOf(result),
    by: deps.who,
    rows,
    ended: null,
    ...(result.outcome === 'started' ? partsOf(result) : { run: '', retried: 0, carriedOver: 0 }),
  };
  const recorded = await extendHistory(deps, lease, entry);
  // A run on request does not use up a waiting occurrence.
  const place = isManual ? {} : { waiting: '' };
  return updateSchedule(deps.ledger.redis, lease, {
    ...recorded,
    ...settlement,
    fields: { ...fields, ...place },
    ifActive: !isManual,
  });
}

function partsOf({ run, retried, carriedOver }: Extract<MakeRunResult, { outcome: 'started' }>) {
  return { run, retried, carriedOver };
}

function reasonOf(result: MakeRunResult): string {
  if (result.outcome === 'refused') return result.refusal.reason;
  return 'reason' in result ? result.reason : '';
}

/** Records in the run of the last occurrence that a run sends ids of it again. Repeating it changes nothing. */
export async function linkRetried({ ledger: { redis }, now }: ScheduleDeps, run: Run): Promise<void> {
  if (run.retryOf === '') return;
  const entry = { at: now(), action: 'retry', by: 'guard', who: run.createdBy, reason: run.note } as const;
  await noteRetry(redis, run.retryOf, run.id, entry);
}
