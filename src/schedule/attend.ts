import { removeRun } from '../ledger/remove-run.ts';
import { isSealed, type Run, readRun } from '../ledger/run.ts';
import { sealTally } from '../ledger/tally.ts';
import { leaveToWorkers } from '../queue/leave-to-workers.ts';
import { duration, plural } from '../terminal/words.ts';
import { archiveFiles } from './archive.ts';
import { type Decision, decide, type LiveRun } from './decide.ts';
import { type Hand, takeInHand } from './hand.ts';
import { type HistoryEntry, withEnd, withEntry } from './history.ts';
import { makeRun } from './make-run.ts';
import type { Schedule } from './schedule.ts';
import { readHistory, readSchedule, settle, steerSchedule } from './schedule-store.ts';
import type { ScheduleWork } from './work.ts';

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
type Sight = { schedule: Schedule; last: Run | null; isToFollow: boolean; decision: Decision };

/** Null if there is nothing to do, or nothing that this process could. */
async function look({ ledger: { redis }, target, sources, now }: ScheduleWork, name: string): Promise<Sight | null> {
  const schedule = await readSchedule(redis, target.fp, name);
  if (schedule === null || schedule.state === 'removed' || !Object.hasOwn(sources, schedule.from)) return null;
  const isOpen = schedule.lastRun !== '' && schedule.lastState === '';
  const last = isOpen ? await readRun(redis, schedule.lastRun) : null;
  const isToFollow = isOpen && (last === null || isSealed(last.state) || last.state === 'planned');
  const decision = decide(schedule, last && liveOf(last), now());
  return isToFollow || decision.do !== 'nothing' ? { schedule, last, isToFollow, decision } : null;
}

function liveOf({ id, state, reason }: Run): LiveRun | null {
  return isSealed(state) ? null : { id, state, reason };
}

async function act(work: ScheduleWork, hand: Hand, { schedule, last, isToFollow, decision }: Sight): Promise<void> {
  await dropHalfMade(work, hand, schedule);
  if (isToFollow) return follow(work, hand, schedule, last);
  switch (decision.do) {
    case 'nothing':
      return;
    case 'pause':
      return pause(work, hand, decision.reason);
    case 'miss':
      return pass(work, hand, decision, 'missed', `seen ${duration(decision.lateMs)} late`, decision.hadWaited);
    case 'skip':
      return pass(work, hand, decision, 'skipped', decision.reason);
    case 'wait':
      return cancelFor(work, hand, (await take(work, hand, decision)) ? decision.cancel : null);
    case 'run':
      return run(work, hand, schedule, decision);
  }
}

/** A process that was killed while it wrote a run left it: nobody has started it, and nobody will. */
async function dropHalfMade(
  { ledger: { redis } }: ScheduleWork,
  hand: Hand,
  { preparing, lastRun }: Schedule,
): Promise<void> {
  if (preparing === '' || preparing === lastRun) return;
  const run = await readRun(redis, preparing);
  if (run?.state === 'preparing' || run?.state === 'planned') await removeRun(redis, run);
  await settle(redis, hand, { fields: { preparing: '' } });
}

/** Does what is to be done about the last run alone, and returns the schedule as it is then; the run, if it has not ended. */
export async function followLast(
  work: ScheduleWork,
  hand: Hand,
): Promise<{ schedule: Schedule; live: Run | null } | null> {
  const { redis } = work.ledger;
  const schedule = await readSchedule(redis, hand.fp, hand.name);
  if (schedule === null || schedule.lastRun === '' || schedule.lastState !== '')
    return schedule && { schedule, live: null };
  const last = await readRun(redis, schedule.lastRun);
  if (last !== null && !isSealed(last.state)) return { schedule, live: last };
  await follow(work, hand, schedule, last);
  return { schedule: (await readSchedule(redis, hand.fp, hand.name)) ?? schedule, live: null };
}

/** Starts the last run where a crash kept it from being started, or notes how it ended and puts its files away. */
async function follow(work: ScheduleWork, hand: Hand, schedule: Schedule, last: Run | null): Promise<void> {
  const { redis } = work.ledger;
  if (last === null) {
    await settle(redis, hand, { fields: { lastState: 'lost', lastEndedAt: work.now(), toArchive: '' } });
    return;
  }
  if (last.state === 'planned') return leaveToWorkers(work.ledger, work.feeder, last, last.createdBy);
  const { id, state, counts } = await sealTally(redis, last);
  const left = counts.failed + counts.unknown + counts.not_attempted + counts.rejected;
  const ended = { state, deleted: counts.deleted, gone: counts.absent + counts.gone_unconfirmed, left };
  const history = withEnd(await readHistory(redis, hand.fp, hand.name), id, ended);
  const isWell = state === 'completed' && left === 0;
  if (isWell) await archive(work, schedule);
  await settle(redis, hand, { fields: { lastState: state, lastEndedAt: last.endedAt, toArchive: '' }, history });
}

async function archive({ sources, log }: ScheduleWork, { name, from, toArchive }: Schedule): Promise<void> {
  const source = sources[from];
  if (toArchive === null || source?.kind !== 'glob' || source.archive === null) return;
  const { moved, left } = await archiveFiles(source.archive, toArchive);
  log.info({ schedule: name, run: toArchive.run, files: moved.length }, 'files put away');
  if (left.length > 0)
    log.warn({ schedule: name, files: left, reason: 'changed since, or not here' }, 'files not put away');
}

async function pause({ ledger: { redis }, now, who, log }: ScheduleWork, hand: Hand, reason: string): Promise<void> {
  await steerSchedule(redis, hand.fp, hand.name, 'pause', { at: now(), by: 'guard', who, reason });
  log.warn({ schedule: hand.name, reason }, 'schedule paused');
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
  { slot, missed }: { slot: number; missed: number },
): Promise<boolean> {
  const reason = `${plural(missed, 'slots')} passed before one was seen to`;
  const history = missed > 0 ? await passedIn(work, hand, { slot, slots: missed }, 'missed', reason) : null;
  const settlement = { fields: { after: slot, waiting: slot }, ...(history && { history }), ifActive: true };
  return (await settle(work.ledger.redis, hand, settlement)) === 'done';
}

async function cancelFor(work: ScheduleWork, { name }: Hand, run: string | null): Promise<void> {
  if (run === null) return;
  const reason = `the next slot of schedule ${name} has come`;
  await work.ledger.steer(run, work.now(), { action: 'cancel', reason, by: 'guard', who: work.who });
  work.log.info({ schedule: name, run }, 'cancelling the last run for the next one');
}

async function run(
  work: ScheduleWork,
  hand: Hand,
  schedule: Schedule,
  decision: Decision & { do: 'run' },
): Promise<void> {
  const isTaken = schedule.waiting === decision.slot || (await take(work, hand, decision));
  if (isTaken) await makeRun(work, hand, schedule, { slot: decision.slot, byHand: false });
}
