import { messageOf } from '../errors.ts';
import { readChunks } from '../input/chunk-ids.ts';
import { claimList, planRun, writeRun } from '../ledger/create-run.ts';
import { removeRun } from '../ledger/end-run.ts';
import { isSealed, readRun } from '../ledger/run.ts';
import { leaveToWorkers } from '../queue/feeder.ts';
import { isRedisTrouble } from '../redis/errors.ts';
import { type ListFacts, protectedChange, type Refusal, refusalOf, withRows } from './guards.ts';
import type { Hand } from './hand.ts';
import { type ScheduledList, withScheduledList } from './read-scheduled-list.ts';
import { type GuardCode, type HistoryEntry, type Schedule, settingsOf, withEntry } from './schedule.ts';
import { readHistory, type ScheduleWork, type Settlement, settle, steerSchedule } from './schedule-store.ts';

/** What became of a slot that was to have a run. `void`: another process sees to it, or the schedule isn't active any more. */
export type Made =
  | { outcome: 'started'; run: string; rows: number; ids: number; reason: string }
  | { outcome: 'refused'; refusal: Refusal }
  | { outcome: 'empty' | 'failed' | 'skipped'; reason: string }
  | { outcome: 'void' };

/** A slot, and whether somebody asked for it by hand: then the schedule may be paused, and a refusal does not pause it. */
export type Occasion = { slot: number; byHand: boolean };

/**
 * Makes the run of a slot: reads the list, asks the guards, writes the run, and starts it if no run was made for this slot before. Whatever
 * comes of it stands in the history. Throws if Redis is in trouble; nothing was started then, or it was and is known.
 */
export async function makeRun(work: ScheduleWork, hand: Hand, schedule: Schedule, occasion: Occasion): Promise<Made> {
  try {
    return await withScheduledList(work, schedule, hand.signal, (list) => makeOf(work, hand, schedule, occasion, list));
  } catch (error) {
    if (hand.signal.aborted) return { outcome: 'void' };
    if (isRedisTrouble(error)) throw error;
    return note(work, hand, occasion, { outcome: 'failed', reason: messageOf(error) });
  }
}

async function makeOf(
  work: ScheduleWork,
  hand: Hand,
  schedule: Schedule,
  occasion: Occasion,
  list: ScheduledList,
): Promise<Made> {
  const { refusal, nothing } = judge(list, schedule);
  if (refusal !== null) return refuse(work, hand, occasion, refusal, list.spool.rows);
  if (nothing !== '') return note(work, hand, occasion, { outcome: 'empty', reason: nothing });
  return start(work, hand, schedule, occasion, list);
}

/** What keeps a list from becoming a run: the guard that refuses it, or that there is nothing to do. */
export function judge(list: ScheduledList, schedule: Schedule): { refusal: Refusal | null; nothing: string } {
  const { spool, nothing } = list;
  if (nothing !== '') return { refusal: null, nothing };
  const refusal = refusalOf(factsOf(list), schedule, settingsOf(schedule).maxDeletes ?? 0);
  return { refusal, nothing: refusal === null && spool.rows === 0 ? 'the list is empty' : '' };
}

export function factsOf({ spool: { rows, ids, sha256, protectedList } }: ScheduledList): ListFacts {
  return { rows, ids: ids.annotations + ids.views, sha256, protectedList };
}

async function refuse(
  work: ScheduleWork,
  hand: Hand,
  occasion: Occasion,
  refusal: Refusal,
  rows: number,
): Promise<Made> {
  const made = await note(work, hand, occasion, { outcome: 'refused', refusal }, rows);
  if (occasion.byHand || made.outcome === 'void') return made;
  await pauseAs(refusal.guard, work, hand, refusal.reason);
  return made;
}

/** As a guard does it: who happens to attend has nothing to do with it. */
export async function pauseAs(
  guard: GuardCode,
  { ledger: { redis }, now, log }: ScheduleWork,
  hand: Hand,
  reason: string,
): Promise<void> {
  await steerSchedule(redis, hand.fp, hand.name, 'pause', { at: now(), by: 'guard', who: '', guard, reason });
  log.warn({ schedule: hand.name, guard, reason }, 'schedule paused');
}

/** Writes the run, which nobody works on before it is the one of its slot. */
async function start(
  work: ScheduleWork,
  hand: Hand,
  schedule: Schedule,
  occasion: Occasion,
  list: ScheduledList,
): Promise<Made> {
  const { spool, read } = list;
  const { protectedList } = spool;
  const { ledger, target, who } = work;
  const settings = settingsOf(schedule);
  const { note: why, priority } = schedule;
  const origin = { note: why, priority, detached: true, who: `schedule ${schedule.name} on ${who}`, command: '' };
  const plan = planRun(settings, target, spool, origin);
  // Whose report somebody still waits for at another place must not keep a slot from its run.
  const id = await claimList(ledger.redis, plan.list, work.now(), ({ state }) => isSealed(state));
  if ((await readRun(ledger.redis, id)) !== null) {
    return note(work, hand, occasion, { outcome: 'skipped', reason: `the same list is under way as run ${id}` });
  }
  if ((await settle(ledger.redis, hand, { fields: { preparing: id } })) !== 'done') return { outcome: 'void' };
  await writeRun(ledger.redis, id, plan, readChunks(spool), work.now(), () => hand.signal.throwIfAborted());
  const reason = protectedChange(factsOf(list), schedule);
  const made = { outcome: 'started', run: id, rows: spool.rows, ids: plan.ids, reason } as const;
  const written = (await readRun(ledger.redis, id))!;
  const done = await settleSlot(work, hand, occasion, made, spool.rows, {
    claim: { slot: occasion.slot, run: id },
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
  const slot = new Date(occasion.slot).toISOString();
  const facts = { schedule: schedule.name, run: id, rows: spool.rows, slot, ...(reason !== '' && { reason }) };
  work.log.info(facts, 'scheduled run started');
  await leaveToWorkers(ledger, work.feeder, written, { who: plan.who, reason: '' });
  return made;
}

async function note(
  work: ScheduleWork,
  hand: Hand,
  occasion: Occasion,
  made: Made,
  rows: number | null = null,
): Promise<Made> {
  const done = await settleSlot(work, hand, occasion, made, rows, { fields: {} });
  if (done !== 'done') return { outcome: 'void' };
  if (made.outcome === 'failed') work.log.warn({ schedule: hand.name, reason: made.reason }, 'a slot has no run');
  return made;
}

async function settleSlot(
  { ledger: { redis }, now, who }: ScheduleWork,
  hand: Hand,
  { slot, byHand }: Occasion,
  made: Made,
  rows: number | null,
  { fields, ...settlement }: Settlement,
): ReturnType<typeof settle> {
  if (made.outcome === 'void') return 'stopped';
  const entry: HistoryEntry = {
    ...{ slot, slots: 1, at: now(), outcome: made.outcome, reason: reasonOf(made), by: who, rows, ended: null },
    run: made.outcome === 'started' ? made.run : '',
  };
  const history = withEntry(await readHistory(redis, hand.fp, hand.name), entry);
  // A slot that waits while a run is made by hand is still to come.
  const place = byHand ? {} : { waiting: '' };
  return settle(redis, hand, { ...settlement, fields: { ...fields, ...place }, history, ifActive: !byHand });
}

function reasonOf(made: Made): string {
  if (made.outcome === 'refused') return made.refusal.reason;
  return 'reason' in made ? made.reason : '';
}
