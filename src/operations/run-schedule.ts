import { ExpungeError } from '../errors.ts';
import { requireSameDefinitions } from '../ledger/same-definitions.ts';
import type { Advice } from '../model/to-type.ts';
import { createEnqueuer } from '../queue/enqueuer.ts';
import { withQueue } from '../queue/on-demand.ts';
import { countConsumers, sharedQueueName } from '../queue/queues.ts';
import { dryRun, runNow, type ScheduleDryRun } from '../schedule/follow-run.ts';
import type { MakeRunResult } from '../schedule/make-run.ts';
import type { ScheduleDeps } from '../schedule/schedule-store.ts';
import type { ScheduleAction, SeenScheduleAction } from './action.ts';
import { detachedWarnings } from './liveness.ts';
import { findSchedule } from './schedule-record.ts';
import { type SchedulePlace, scheduleWork } from './schedule-work.ts';
import type { Session } from './session.ts';

/** An action for a dry run. Aborting `stop` ends the reading of the list; then nothing was started. */
export type DryRunAction = ScheduleAction & { stop: AbortSignal };

/** An action for a run. `onRun` is called with the run before it is written. */
export type RunScheduleAction = SeenScheduleAction & {
  stop: AbortSignal;
  onRun?: (run: string) => Promise<void>;
};

/** A run that was made of a schedule, or the reason why its list had nothing to do. */
type Made = Extract<MakeRunResult, { outcome: 'started' }> | { outcome: 'empty'; reason: string };

export type MadeNow = { made: Made; warnings: Advice[] };

export async function runSchedule(session: Session, place: SchedulePlace, action: RunScheduleAction): Promise<MadeNow> {
  const { target, name, stop, seen, onRun } = action;
  return withWork(session, place, action, async (work) => {
    const made = requireMade(name, await runNow({ ...work, onRun }, name, stop, seen));
    if (made.outcome !== 'started') return { made, warnings: [] };
    const workers = await countConsumers(session.redis, { fp: target.fp, name: sharedQueueName });
    return { made, warnings: detachedWarnings(target, workers, null) };
  });
}

export async function dryRunSchedule(
  session: Session,
  place: SchedulePlace,
  action: DryRunAction,
): Promise<ScheduleDryRun> {
  return withWork(session, place, action, (work) => dryRun(work, action.name, action.stop));
}

/**
 * Calls `body` with what it takes to read the list of a schedule here. Throws USAGE for a schedule that does not exist, and GUARD for a schedule whose
 * resources are defined in another way here.
 */
async function withWork<T>(
  session: Session,
  place: SchedulePlace,
  { target, name, by }: ScheduleAction,
  body: (work: ScheduleDeps) => Promise<T>,
): Promise<T> {
  const { definitions } = await findSchedule(session, target, name);
  requireSameDefinitions(definitions, `schedule ${name}`);
  const address = { fp: target.fp, name: sharedQueueName, connection: session.queueConnection };
  return withQueue(address, async (queue) => {
    const work = scheduleWork({ session, place, target, enqueuer: createEnqueuer(session.ledger, queue), by });
    await work.syncClock();
    return body(work);
  });
}

/** Throws GUARD for a list that a guard rejects, USAGE if there is no list, and INTERRUPTED if its reading was stopped. */
function requireMade(schedule: string, result: MakeRunResult): Made {
  switch (result.outcome) {
    case 'started':
      return result;
    case 'empty':
      return { outcome: 'empty', reason: result.reason };
    case 'refused':
      throw new ExpungeError('GUARD', `schedule ${schedule} sent nothing: ${result.refusal.reason}`, {
        next: (toType) => `inspect the list: ${toType('schedule run', schedule, '--dry-run')}`,
      });
    case 'failed':
    case 'skipped':
      throw new ExpungeError('USAGE', `schedule ${schedule} sent nothing: ${result.reason}`);
    case 'void':
      throw new ExpungeError('INTERRUPTED', `schedule ${schedule}: stopped; no run was started`);
  }
}

/** What `--json` prints of a run that was made of a schedule, and the API answers. */
export function madeFacts(schedule: string, made: Made) {
  if (made.outcome === 'empty') return { schedule, ...made };
  const { carriedOver, ...facts } = made;
  return { schedule, ...facts, carried_over: carriedOver };
}

/** What `--json` prints of a dry run. */
export function dryRunFacts(
  schedule: string,
  { list, retried, carriedOver, protectedRows, refusal, nothing }: ScheduleDryRun,
) {
  const { protectedList, ...others } = list;
  return {
    dry_run: true,
    schedule,
    ...others,
    retried,
    carried_over: carriedOver,
    protected: protectedRows,
    protected_list: protectedList,
    guard: refusal?.guard ?? null,
    reason: refusal?.reason ?? nothing,
  };
}
