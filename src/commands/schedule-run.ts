import { readTarget } from '../config/check-target.ts';
import { ExpungeError } from '../errors.ts';
import { count, plural } from '../format.ts';
import { logFor } from '../logger.ts';
import { detachedWarnings } from '../operations/liveness.ts';
import { withRedis } from '../operations/session.ts';
import { createFeeder } from '../queue/feeder.ts';
import { openQueue, sharedQueueName } from '../queue/queue.ts';
import { dryRun, runNow, type ScheduleDryRun } from '../schedule/follow-run.ts';
import type { MakeRunResult } from '../schedule/make-run.ts';
import { type Invocation, jsonLines } from './command.ts';
import { listenForInterrupts } from './interrupts.ts';
import { findSchedule, scheduleWork } from './schedule-work.ts';
import { sayUnlessJson, warnOn } from './session.ts';

/**
 * Makes a run of a schedule now, from the source in this machine's configuration file, and leaves it to the workers. Throws GUARD for a
 * list that a guard rejects.
 */
export async function execute(invocation: Invocation): Promise<number> {
  const { args, config, env, options, stderr } = invocation;
  const target = readTarget(config, env);
  return withRedis(invocation, sayUnlessJson(invocation), async (session) => {
    const { name } = await findSchedule(session, target, args[0] ?? '');
    const { queueConnection, ledger } = session;
    const interrupts = listenForInterrupts(invocation, () => stderr.write('\nStopping: no run was started.\n'));
    const queue = openQueue({ fp: target.fp, name: sharedQueueName, connection: queueConnection });
    try {
      const feeder = createFeeder(ledger, queue);
      const log = logFor(invocation.verbosity, stderr, (line) => stderr.write(`${line}\n`));
      const work = scheduleWork({ invocation, session, target, feeder, log });
      await work.syncClock();
      if (options.dryRun) return reportDryRun(invocation, name, await dryRun(work, name, interrupts.signal));
      const made = await runNow(work, name, interrupts.signal);
      return reportOutcome(invocation, name, made, detachedWarnings(target, await queue.workers(), null));
    } finally {
      interrupts.dispose();
      await queue.close();
    }
  });
}

function reportDryRun(
  { options, stdout, stderr }: Invocation,
  schedule: string,
  { list, retried, carried, note, protectedRows, change, refusal, nothing, maxDeletes }: ScheduleDryRun,
): number {
  const passed =
    nothing === '' ? `within --max-deletes ${maxDeletes} and the other guards` : `nothing to do, ${nothing}`;
  const guard = refusal === null ? passed : `refused: ${refusal.reason}`;
  stderr.write(`Schedule ${schedule}: ${plural(list.ids, 'ids')} in ${plural(list.rows, 'rows')}, ${guard}.\n`);
  if (list.left > 0 || carried > 0) stderr.write(`  The run sends ${leftText(list.sends, { retried, carried })}\n`);
  if (note !== '') stderr.write(`  ${note}\n`);
  const { protectedList, ...others } = list;
  if (protectedList !== null)
    stderr.write(`  ${plural(protectedList.ids, 'protected ids')} read, ${plural(protectedRows, 'rows')} left out\n`);
  if (change !== '') stderr.write(`  ${change}\n`);
  stderr.write('Dry run: nothing was deleted.\n');
  const facts = { ...others, retried, carried, protected: protectedRows, protected_list: protectedList };
  const guarded = { guard: refusal?.guard ?? null, reason: refusal?.reason ?? nothing };
  jsonLines(stdout, options.json)('plan', { dry_run: true, schedule, ...facts, ...guarded });
  return 0;
}

/** `100 ids, 3 of them retried; 900 are carried to the next slot` */
function leftText(ids: number, { retried, carried }: { retried: number; carried: number }): string {
  const again = retried === 0 ? '' : `, ${count(retried)} of them retried`;
  return `${plural(ids, 'ids')}${again}${carried === 0 ? '' : `; ${count(carried)} are carried to the next slot`}`;
}

/** Says what became of it, and what there is to warn of where a run was made. Returns the exit code; throws GUARD or USAGE where no run was made. */
export function reportOutcome(
  { options, stdout, stderr, verbosity }: Invocation,
  schedule: string,
  result: MakeRunResult,
  warnings: readonly string[],
): number {
  switch (result.outcome) {
    case 'started':
      stderr.write(`Schedule ${schedule}: run ${result.run} of ${plural(result.ids, 'ids')} is left to the workers.\n`);
      if (result.retried + result.carried > 0) stderr.write(`  It sends ${leftText(result.ids, result)}\n`);
      if (result.reason !== '') stderr.write(`  ${result.reason}\n`);
      if (verbosity !== 'quiet') stderr.write(`  Follow it: expunge status ${result.run} --watch\n`);
      warnOn(stderr, warnings);
      break;
    case 'empty':
      stderr.write(`Schedule ${schedule}: nothing to do, ${result.reason}.\n`);
      break;
    case 'refused':
      throw new ExpungeError('GUARD', `schedule ${schedule}: ${result.refusal.reason}; nothing was sent`, {
        next: `inspect the list: expunge schedule run ${schedule} --dry-run`,
      });
    case 'failed':
    case 'skipped':
      throw new ExpungeError('USAGE', `schedule ${schedule}: ${result.reason}; nothing was sent`);
    case 'void':
      throw new ExpungeError('INTERRUPTED', `schedule ${schedule}: stopped; no run was started`);
  }
  jsonLines(stdout, options.json)('scheduled', { schedule, ...result });
  return 0;
}
