import { activeMsOf, pendingOf, type Run } from '../ledger/run.ts';
import type { RunFiles } from '../ledger/run-files.ts';
import { isNoneThere } from '../ledger/summary.ts';
import type { Ending, EndingKind } from '../terminal/ending.ts';
import { commandLine } from '../terminal/shell-word.ts';

/** What was written, measured and noticed about a run, where there is any of it. `examples`: ids that show why it halted. */
type Told = { files?: RunFiles | null; pace?: readonly string[]; examples?: readonly string[] };

/** The facts of a command's last words. */
export function endingOf(run: Run, kind: EndingKind, { files = null, pace = [], examples = [] }: Told = {}): Ending {
  const { id, reason, who, halt, doubt, rows, ids, counts, protectedRead, attempts } = run;
  const written = files === null ? [] : [files.outcomes, files.failures].filter((file) => file !== null);
  return {
    kind,
    runId: id,
    reason,
    who,
    halt,
    doubt,
    rows,
    ids,
    isNoneThere: isNoneThere(run),
    pending: pendingOf(run),
    counts,
    protectedRead,
    attempts,
    activeMs: activeMsOf(run, Date.now()),
    pace,
    failures: files?.groups ?? [],
    examples,
    files: written.map((file) => file.path),
    failuresFile: files?.failures?.path ?? null,
    command: typedCommand(),
  };
}
/** The command line as somebody would type it again, without what may be a secret: it is printed, and stays with the run. */
export function typedCommand(): string {
  return commandLine(process.argv.slice(2));
}
