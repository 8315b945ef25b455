import { ExpungeError } from '../../errors.ts';
import { plural } from '../../format.ts';
import { countPending, type HaltCode, type Run } from '../../ledger/run.ts';
import type { Target } from '../../model/target.ts';
import { type Advice, adviceText } from '../../model/to-type.ts';
import { visibleLine } from '../../model/visible.ts';
import type { Schedule } from '../../schedule/schedule.ts';
import { targetName } from '../../terminal/stop-text.ts';
import { columns } from '../../terminal/style.ts';
import { type Invocation, jsonLines } from '../command.ts';
import { askYes } from '../session.ts';

/**
 * The halt of `--all --halted`; null if the command names one run or schedule. Throws USAGE if it does neither, or both. `one`: what a command names,
 * 'a run'.
 */
export function haltOfAll({ commandName, args, options }: Invocation, one: string): HaltCode | null {
  const { all = false, halted } = options;
  if (args.length > 0 && !all && halted === undefined) return null;
  if (args.length === 0 && all && halted !== undefined) return halted;
  throw new ExpungeError('USAGE', `expected either ${one}, or --all with --halted REASON`, {
    next: (toType) => toType(commandName, '--help'),
  });
}

/** The things that the command resumes. `resume`: resumes one of them as it was shown, and throws what the command for one throws. */
type Work<T> = {
  target: Target;
  halt: HaltCode;
  found: readonly T[];
  table: Table<T>;
  resume(one: T): Promise<unknown>;
};

/** The name of these things and their columns: the first cell is the name of a thing. */
type Table<T> = { things: string; header: readonly string[]; cellsOf(one: T): string[]; noneNext: Advice };

export const haltedRuns: Table<Run> = {
  things: 'runs',
  header: ['RUN', 'PENDING', 'LIST', 'WHY'],
  cellsOf: (run) => [
    run.id,
    plural(countPending(run), 'ids'),
    visibleLine(run.files.join(', ')),
    visibleLine(run.reason),
  ],
  noneNext: (toType) => `${toType('runs', '--state', 'halted')} lists all that are halted`,
};

export const haltedSchedules: Table<Schedule> = {
  things: 'schedules',
  header: ['SCHEDULE', 'LAST RUN', 'WHY'],
  cellsOf: ({ name, lastRun, reason }) => [name, lastRun, visibleLine(reason)],
  noneNext: (toType) => `${toType('schedule list')} shows why a schedule is paused`,
};

/**
 * Shows everything that the command reaches, asks once, and resumes each thing as it was shown. A refused thing, for example because it has changed
 * since, does not stop the others: its name is shown, and the command fails afterwards. Throws USAGE if there is nothing to resume.
 */
export async function resumeAll<T>(
  invocation: Invocation,
  { target, halt, found, table, resume }: Work<T>,
): Promise<number> {
  const { toType, stdout, stderr, options } = invocation;
  const { things, header, cellsOf, noneNext } = table;
  const where = `halted for ${halt} at ${targetName(target)}`;
  if (found.length === 0)
    throw new ExpungeError('USAGE', `no ${things.slice(0, -1)} is ${where}: nothing was resumed`, { next: noneNext });
  stderr.write(`${columns([header, ...found.map(cellsOf)])}\n`);
  await askYes(invocation, `Resume ${found.length === 1 ? 'it' : `these ${plural(found.length, things)}`}, ${where}?`);
  const refused: ExpungeError[] = [];
  for (const one of found) {
    const error = await refusalOf(() => resume(one));
    if (error === null) continue;
    refused.push(error);
    const [name] = cellsOf(one);
    const next = error.advice === null ? '' : `\n  ${adviceText(error.advice, toType)}`;
    stderr.write(`Not resumed: ${visibleLine(error.message)}${next}\n`);
    jsonLines(stdout, options.json)('refused', { name, reason: error.message });
  }
  if (refused.length === 0) return 0;
  const code = refused.some((error) => error.code === 'GUARD') ? 'GUARD' : refused[0]!.code;
  throw new ExpungeError(
    code,
    `${refused.length} of ${plural(found.length, things)} ${refused.length === 1 ? 'was' : 'were'} not resumed; see above`,
  );
}

/**
 * Carries out one action. Returns why it was refused; null if it was carried out. Throws errors that would also refuse all others, such as an
 * unreachable Redis.
 */
async function refusalOf(action: () => Promise<unknown>): Promise<ExpungeError | null> {
  try {
    await action();
    return null;
  } catch (error) {
    if (error instanceof ExpungeError && ['USAGE', 'GUARD'].includes(error.code)) return error;
    throw error;
  }
}
