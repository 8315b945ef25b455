import { targetForAction } from '../../config/check-target.ts';
import { count, plural } from '../../format.ts';
import type { ScheduleOperations } from '../../operations/operations.ts';
import { dryRunFacts, type MadeNow, madeFacts } from '../../operations/run-schedule.ts';
import type { ScheduleDryRun } from '../../schedule/follow-run.ts';
import { type Invocation, jsonLines } from '../command.ts';
import { listenForInterrupts } from '../interrupts.ts';
import { readBy, writeWarnings } from '../session.ts';
import { withOperations } from '../with-operations.ts';

/**
 * Makes a run of a schedule now, and leaves it to the workers. Its list comes from the source in this machine's configuration file, or from the
 * source of the server. Throws GUARD for a list that a guard rejects.
 */
export async function execute(invocation: Invocation): Promise<number> {
  const { args, config, env, options } = invocation;
  const target = targetForAction(config, env);
  return withOperations(invocation, 'schedules', async (schedules) => {
    const { name, revision: seen } = await schedules.find(target, args[0] ?? '');
    // A server carries an action out even if its client leaves, so with a server an interrupt ends this command at once.
    const interrupts = config.server === undefined ? listenForStop(invocation) : null;
    const stop = interrupts?.signal ?? new AbortController().signal;
    const action = { target, name, by: readBy(invocation), seen, stop };
    try {
      await (options.dryRun ? tell(invocation, schedules, action) : make(invocation, schedules, action));
    } finally {
      interrupts?.dispose();
    }
    return 0;
  });
}

function listenForStop(invocation: Invocation) {
  return listenForInterrupts(invocation, () => invocation.stderr.write('\nStopping: no run was started.\n'));
}

type RunAction = Parameters<ScheduleOperations['run']>[0];

async function tell(invocation: Invocation, schedules: ScheduleOperations, action: RunAction): Promise<void> {
  const dry = await schedules.dryRun(action);
  sayDryRun(invocation, action.name, dry);
  jsonLines(invocation.stdout, invocation.options.json)('plan', dryRunFacts(action.name, dry));
}

function sayDryRun(
  { stderr }: Invocation,
  schedule: string,
  { list, retried, carriedOver, note, protectedRows, change, refusal, nothing, maxDeletes }: ScheduleDryRun,
): void {
  const passed =
    nothing === '' ? `within --max-deletes ${maxDeletes} and the other guards` : `nothing to do, ${nothing}`;
  const guard = refusal === null ? passed : `refused: ${refusal.reason}`;
  stderr.write(`Schedule ${schedule}: ${plural(list.ids, 'ids')} in ${plural(list.rows, 'rows')}, ${guard}.\n`);
  if (list.left > 0 || carriedOver > 0)
    stderr.write(`  The run sends ${leftText(list.sends, { retried, carriedOver })}\n`);
  if (note !== '') stderr.write(`  ${note}\n`);
  const ids = list.protectedList?.ids;
  if (ids !== undefined)
    stderr.write(`  ${plural(ids, 'protected ids')} read, ${plural(protectedRows, 'rows')} left out\n`);
  if (change !== '') stderr.write(`  ${change}\n`);
  stderr.write('Dry run: nothing was deleted.\n');
}

/** `100 ids, 3 of them retried; 900 are carried over to the next occurrence` */
function leftText(ids: number, { retried, carriedOver }: { retried: number; carriedOver: number }): string {
  const again = retried === 0 ? '' : `, ${count(retried)} of them retried`;
  return `${plural(ids, 'ids')}${again}${carriedOver === 0 ? '' : `; ${count(carriedOver)} are carried over to the next occurrence`}`;
}

async function make(invocation: Invocation, schedules: ScheduleOperations, action: RunAction): Promise<void> {
  const { made, warnings } = await schedules.run(action);
  sayMade(invocation, action.name, made);
  writeWarnings(invocation.stderr, warnings, invocation.toType);
  jsonLines(invocation.stdout, invocation.options.json)('scheduled', madeFacts(action.name, made));
}

function sayMade({ toType, stderr, verbosity }: Invocation, schedule: string, made: MadeNow['made']): void {
  if (made.outcome === 'empty') {
    stderr.write(`Schedule ${schedule}: nothing to do, ${made.reason}.\n`);
    return;
  }
  stderr.write(`Schedule ${schedule}: run ${made.run} of ${plural(made.ids, 'ids')} is left to the workers.\n`);
  if (made.retried + made.carriedOver > 0) stderr.write(`  It sends ${leftText(made.ids, made)}\n`);
  if (made.reason !== '') stderr.write(`  ${made.reason}\n`);
  if (verbosity !== 'quiet') stderr.write(`  Follow it: ${toType('status', made.run, '--watch')}\n`);
}
