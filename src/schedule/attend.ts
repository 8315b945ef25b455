import type { ListSource } from '../config/list-source.ts';
import { duration, plural } from '../format.ts';
import { isSealed, type Run, readRun } from '../ledger/run.ts';
import { archiveFiles, areHere } from './archive.ts';
import { type Decision, decide, type LiveRun } from './decide.ts';
import { dropHalfMade, follow } from './follow-run.ts';
import { type Hand, takeInHand } from './hand.ts';
import { makeRun, pauseAs } from './make-run.ts';
import { type HistoryEntry, type ReadFiles, type Schedule, withEntry } from './schedule.ts';
import { readHistory, readSchedule, type ScheduleWork, settle } from './schedule-store.ts';
import { dueSlots } from './slots.ts';

/** So many things are done about one schedule in a row; the next look goes on. */
const turnsAtMost = 5;

/**
 * Does what is to be done about a schedule now: notes how its last run ended, and makes a run of a slot that is due. Whoever hears a bell calls
 * it, and everybody now and then, in case a bell was lost: calling it twice, or in two processes, does nothing twice.
 */
export async function attend(work: ScheduleWork, name: string, stop: AbortSignal): Promise<void> {
  if ((await look(work, name)) === null) return;
  const hand = await takeInHand(work.ledger.redis, work.target.fp, name, stop);
  if (hand === null) return;
  try {
    for (let turn = 0; turn < turnsAtMost && !hand.signal.aborted; turn++) {
      const sight = await look(work, name);
      if (sight === null) return;
      await act(work, hand, sight);
    }
  } finally {
    await hand.release();
  }
}

/** What there is to do about a schedule: first about its last run, if that has ended or was never started, then about its slots. */
type Sight = { schedule: Schedule; last: Run | null; isToFollow: boolean; archive: string | null; decision: Decision };

/** Null if there is nothing to do, or nothing that this process could. */
async function look({ ledger: { redis }, target, sources, now }: ScheduleWork, name: string): Promise<Sight | null> {
  const schedule = await readSchedule(redis, target.fp, name);
  const source = schedule === null || schedule.state === 'removed' ? undefined : sources[schedule.from];
  if (schedule === null || source === undefined) return null;
  const isOpen = schedule.lastRun !== '' && schedule.lastState === '';
  const last = isOpen ? await readRun(redis, schedule.lastRun) : null;
  const isToFollow = isOpen && (last === null || isSealed(last.state) || last.state === 'planned');
  const decision = decide(schedule, last && liveOf(last), now());
  const archive = isOpen ? null : await archiveOf(schedule, source);
  const isIdle = !isToFollow && archive === null && decision.do === 'nothing';
  return isIdle ? null : { schedule, last, isToFollow, archive, decision };
}

function liveOf({ id, state, reason }: Run): LiveRun | null {
  return isSealed(state) ? null : { id, state, reason };
}

/** Where files wait to be put away by this machine; null if none do. */
async function archiveOf({ toArchive }: Schedule, source: ListSource): Promise<string | null> {
  if (toArchive === null || source.kind !== 'glob') return null;
  return (await areHere(toArchive)) ? source.archive : null;
}

async function act(work: ScheduleWork, hand: Hand, sight: Sight): Promise<void> {
  const { schedule, last, isToFollow, archive, decision } = sight;
  await dropHalfMade(work, hand, schedule);
  if (isToFollow) return follow(work, hand, last);
  if (archive !== null) return putAway(work, hand, schedule.toArchive!, archive);
  switch (decision.do) {
    case 'nothing':
      return;
    case 'pause':
      return pauseAs('halted', work, hand, decision.reason);
    case 'miss':
      return pass(work, hand, decision, 'missed', `seen ${duration(decision.lateMs)} late`, decision.hadWaited);
    case 'skip':
      return pass(work, hand, decision, 'skipped', decision.reason);
    case 'wait':
      return cancelFor(work, hand, (await take(work, hand, schedule, decision)) ? decision.cancel : null);
    case 'run':
      return run(work, hand, schedule, decision);
  }
}

async function putAway({ ledger, log }: ScheduleWork, hand: Hand, files: ReadFiles, archive: string): Promise<void> {
  const { moved, left } = await archiveFiles(archive, files);
  log.info({ schedule: hand.name, run: files.run, files: moved.length }, 'files put away');
  if (left.length > 0)
    log.warn(
      { schedule: hand.name, files: left, reason: 'they have changed since, or are gone' },
      'files not put away',
    );
  await settle(ledger.redis, hand, { fields: { toArchive: '' } });
}

type Passed = { slot: number; slots: number };

/** Slots that get no run. */
async function pass(
  work: ScheduleWork,
  hand: Hand,
  { slot, slots }: Passed,
  outcome: 'missed' | 'skipped',
  reason: string,
  hadWaited = false,
): Promise<void> {
  const history = await passedIn(work, hand, { slot, slots }, outcome, reason);
  const fields = { after: slot, ...(hadWaited && { waiting: '' }) };
  await settle(work.ledger.redis, hand, { fields, history, ifActive: true });
  work.log.info({ schedule: hand.name, slots, reason }, outcome === 'missed' ? 'slots missed' : 'slots skipped');
}

async function passedIn(
  { ledger: { redis }, now, who }: ScheduleWork,
  hand: Hand,
  { slot, slots }: Passed,
  outcome: 'missed' | 'skipped',
  reason: string,
): Promise<HistoryEntry[]> {
  const facts = { run: '', rows: null, ended: null };
  const entry = { slot, slots, at: now(), outcome, reason, by: who, ...facts };
  return withEntry(await readHistory(redis, hand.fp, hand.name), entry);
}

/** Notes that a slot is to have a run, whatever becomes of this process; false if it may not any more. */
async function take(
  work: ScheduleWork,
  hand: Hand,
  schedule: Schedule,
  { slot, missed }: { slot: number; missed: number },
): Promise<boolean> {
  const reason = `${plural(missed, 'slots')} passed before one was seen to`;
  const before = missed > 0 ? (dueSlots(schedule, schedule.after, slot - 1)?.latest ?? slot) : slot;
  const history = missed > 0 ? await passedIn(work, hand, { slot: before, slots: missed }, 'missed', reason) : null;
  const settlement = { fields: { after: slot, waiting: slot }, ...(history && { history }), ifActive: true };
  return (await settle(work.ledger.redis, hand, settlement)) === 'done';
}

async function cancelFor(work: ScheduleWork, { name }: Hand, run: string | null): Promise<void> {
  if (run === null) return;
  const order = { reason: 'the next slot has come', by: 'guard', who: `schedule ${name}` } as const;
  await work.ledger.steer(run, work.now(), { action: 'cancel', ...order });
  work.log.info({ schedule: name, run }, 'cancelling the last run for the next one');
}

async function run(
  work: ScheduleWork,
  hand: Hand,
  schedule: Schedule,
  decision: Decision & { do: 'run' },
): Promise<void> {
  const isTaken = schedule.waiting === decision.slot || (await take(work, hand, schedule, decision));
  if (isTaken) await makeRun(work, hand, schedule, { slot: decision.slot, byHand: false });
}
