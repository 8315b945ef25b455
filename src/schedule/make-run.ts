import { messageOf } from '../errors.ts';
import { isoTime } from '../format.ts';
import { chunkSizes, readChunks } from '../input/chunk-ids.ts';
import { claimList, planRun, writeRun } from '../ledger/create-run.ts';
import { removeRun } from '../ledger/end-run.ts';
import { isSealed, readRun } from '../ledger/run.ts';
import { sumIds } from '../model/resource.ts';
import { pausedEvent, refusedEvent } from '../notify/events.ts';
import { startDetachedRun } from '../queue/feeder.ts';
import { isRedisError } from '../redis/errors.ts';
import { type ListFacts, type ListRejection, protectedChange, rejectionOf, withRows } from './guards.ts';
import type { ScheduleLease } from './lease.ts';
import { type ScheduledList, withScheduledList } from './read-scheduled-list.ts';
import { type GuardCode, type HistoryEntry, type Schedule, settingsOf, withEntry } from './schedule.ts';
import {
  readHistory,
  type ScheduleDeps,
  type ScheduleUpdate,
  steerSchedule,
  updateSchedule,
} from './schedule-store.ts';

/** The result of making a run for a slot. `void`: another process makes it, or the schedule is no longer active. */
export type MakeRunResult =
  | { outcome: 'started'; run: string; rows: number; ids: number; reason: string }
  | { outcome: 'refused'; refusal: ListRejection }
  | { outcome: 'empty' | 'failed' | 'skipped'; reason: string }
  | { outcome: 'void' };

/** A slot, and whether an operator requested the run: then the schedule may be paused, and a rejection does not pause it. */
export type Trigger = { slot: number; isManual: boolean };

/**
 * Makes the run of a slot: reads the list, evaluates the guards, writes the run, and starts it if the slot has no run yet. The history
 * records the result. Throws errors of Redis; then nothing was started, or the schedule knows the run that was. Repeating it makes no
 * second run of a slot.
 */
export async function makeRun(
  deps: ScheduleDeps,
  lease: ScheduleLease,
  schedule: Schedule,
  trigger: Trigger,
): Promise<MakeRunResult> {
  try {
    return await withScheduledList(deps, schedule, lease.signal, (list) =>
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
  list: ScheduledList,
): Promise<MakeRunResult> {
  const { refusal, nothing } = evaluateList(list, schedule);
  if (refusal !== null) return rejectList(deps, lease, trigger, refusal, list.spool.rows);
  if (nothing !== '') return recordResult(deps, lease, trigger, { outcome: 'empty', reason: nothing });
  return start(deps, lease, schedule, trigger, list);
}

/** Why a list does not become a run: the guard that rejects it, or `nothing` to do. Both are empty for a list to delete. */
export function evaluateList(
  list: ScheduledList,
  schedule: Schedule,
): { refusal: ListRejection | null; nothing: string } {
  const { spool, nothing } = list;
  if (nothing !== '') return { refusal: null, nothing };
  const refusal = rejectionOf(factsOf(list), schedule);
  return { refusal, nothing: refusal === null && spool.rows === 0 ? 'the list is empty' : '' };
}

export function factsOf({ spool: { rows, ids, sha256, protectedList } }: ScheduledList): ListFacts {
  return { rows, ids: sumIds(ids), sha256, protectedList };
}

async function rejectList(
  deps: ScheduleDeps,
  lease: ScheduleLease,
  trigger: Trigger,
  refusal: ListRejection,
  rows: number,
): Promise<MakeRunResult> {
  const result = await recordResult(deps, lease, trigger, { outcome: 'refused', refusal }, rows);
  if (trigger.isManual || result.outcome === 'void') return result;
  await pauseAs(refusal.guard, deps, lease, refusal.reason);
  return result;
}

/** Pauses a schedule as a guard; the process that reconciles is not recorded. Repeating it changes nothing. */
export async function pauseAs(
  guard: GuardCode,
  { ledger: { redis }, target, now, log }: ScheduleDeps,
  lease: ScheduleLease,
  reason: string,
): Promise<void> {
  const at = now();
  const event = pausedEvent({ target, name: lease.name, at, reason }, guard, '');
  await steerSchedule(redis, lease.fp, lease.name, 'pause', { at, by: 'guard', who: '', guard, reason }, event);
  log.warn({ schedule: lease.name, guard, reason }, 'schedule paused');
}

/** Writes the run, and starts it once it is recorded as the run of its slot. */
async function start(
  deps: ScheduleDeps,
  lease: ScheduleLease,
  schedule: Schedule,
  trigger: Trigger,
  list: ScheduledList,
): Promise<MakeRunResult> {
  const { spool, read } = list;
  const { protectedList } = spool;
  const { ledger, target, who } = deps;
  const settings = settingsOf(schedule);
  const { note: why, priority } = schedule;
  const origin = {
    note: why,
    retryOf: '',
    priority,
    detached: true,
    who: `schedule ${schedule.name} on ${who}`,
    command: '',
  };
  const plan = planRun(settings, target, spool, origin);
  // An ended run of the same list whose report is not delivered must not block the slot.
  const id = await claimList(ledger.redis, plan.list, deps.now(), ({ state }) => isSealed(state));
  if ((await readRun(ledger.redis, id)) !== null) {
    return recordResult(deps, lease, trigger, {
      outcome: 'skipped',
      reason: `run ${id} is deleting the same list`,
    });
  }
  if ((await updateSchedule(ledger.redis, lease, { fields: { preparing: id } })) !== 'done') return { outcome: 'void' };
  await writeRun(ledger.redis, id, plan, readChunks(spool, chunkSizes(settings.canary)), deps.now(), () =>
    lease.signal.throwIfAborted(),
  );
  const reason = protectedChange(factsOf(list), schedule);
  const result = { outcome: 'started', run: id, rows: spool.rows, ids: plan.ids, reason } as const;
  const written = (await readRun(ledger.redis, id))!;
  const done = await recordSlot(deps, lease, trigger, result, spool.rows, {
    claim: { slot: trigger.slot, run: id },
    fields: {
      ...{ preparing: '', lastRun: id, lastState: '', lastSha256: spool.sha256, waived: '' },
      rows: JSON.stringify(withRows(schedule.rows, spool.rows)),
      protectedList: protectedList === null ? '' : JSON.stringify(protectedList),
      toArchive: read.length === 0 ? '' : JSON.stringify({ run: id, files: read }),
    },
  });
  if (done !== 'done') {
    await removeRun(ledger.redis, written);
    return { outcome: 'void' };
  }
  const slot = isoTime(trigger.slot);
  const facts = { schedule: schedule.name, run: id, rows: spool.rows, slot, ...(reason !== '' && { reason }) };
  deps.log.info(facts, 'scheduled run started');
  await startDetachedRun(ledger, deps.feeder, written, { who: plan.who, reason: '' });
  return result;
}

async function recordResult(
  deps: ScheduleDeps,
  lease: ScheduleLease,
  trigger: Trigger,
  result: MakeRunResult,
  rows: number | null = null,
): Promise<MakeRunResult> {
  const { target, now } = deps;
  const event =
    result.outcome === 'refused'
      ? refusedEvent(
          { target, name: lease.name, at: now(), reason: result.refusal.reason },
          trigger.slot,
          result.refusal.guard,
        )
      : null;
  const fields = result.outcome === 'empty' ? { heartbeatDue: now() } : {};
  const done = await recordSlot(deps, lease, trigger, result, rows, { fields, event });
  if (done !== 'done') return { outcome: 'void' };
  if (result.outcome === 'failed')
    deps.log.warn({ schedule: lease.name, reason: result.reason }, 'no run was made for a slot');
  return result;
}

async function recordSlot(
  { ledger: { redis }, now, who }: ScheduleDeps,
  lease: ScheduleLease,
  { slot, isManual }: Trigger,
  result: MakeRunResult,
  rows: number | null,
  { fields, ...settlement }: ScheduleUpdate,
): ReturnType<typeof updateSchedule> {
  if (result.outcome === 'void') return 'stopped';
  const entry: HistoryEntry = {
    ...{ slot, slots: 1, at: now(), outcome: result.outcome, reason: reasonOf(result), by: who, rows, ended: null },
    run: result.outcome === 'started' ? result.run : '',
  };
  const history = withEntry(await readHistory(redis, lease.fp, lease.name), entry);
  // A run on request does not use up a slot that waits.
  const place = isManual ? {} : { waiting: '' };
  return updateSchedule(redis, lease, { ...settlement, fields: { ...fields, ...place }, history, ifActive: !isManual });
}

function reasonOf(result: MakeRunResult): string {
  if (result.outcome === 'refused') return result.refusal.reason;
  return 'reason' in result ? result.reason : '';
}
