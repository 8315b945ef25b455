import { ExpungeError } from '../errors.ts';
import { noteTargetAction } from '../ledger/audit.ts';
import { listRuns } from '../ledger/list-runs.ts';
import { removeRun } from '../ledger/remove-run.ts';
import { isSealed, pendingOf, type Run } from '../ledger/run.ts';
import { exitOf, summaryOf } from '../ledger/summary.ts';
import { confirmYes } from '../terminal/ask.ts';
import { plainLine } from '../terminal/style.ts';
import { count } from '../terminal/words.ts';
import type { Invocation } from './command.ts';
import { findRun } from './find-run.ts';
import { reasonOf } from './reason-of.ts';
import { type Session, sayOn, whoAmI, withRedis } from './session.ts';

/** `runs` lists, `runs remove` forgets: of that only the target's audit trail tells. */
export async function execute(invocation: Invocation): Promise<number> {
  const say = invocation.options.json ? () => {} : sayOn(invocation.stderr);
  return withRedis(invocation, say, (session) =>
    invocation.verb === 'runs' ? list(invocation, session) : remove(invocation, session),
  );
}

async function list({ options, stdout }: Invocation, { redis }: Session): Promise<number> {
  const runs = await listRuns(redis);
  if (options.json)
    for (const run of runs) stdout.write(`${JSON.stringify(summaryOf(run, exitOf(run), Date.now()))}\n`);
  else stdout.write(`${listText(runs)}\n`);
  return 0;
}

function listText(runs: Run[]): string {
  if (runs.length === 0) return 'No runs. Start one: expunge run FILE --resource annotations --base-url URL';
  const header = ['RUN', 'STATE', 'ROWS', 'PENDING', 'TARGET', 'LIST'];
  const table = [header, ...runs.map(cellsOf)];
  const widths = header.map((_, column) => Math.max(...table.map((cells) => cells[column]!.length)));
  return table
    .map((cells) =>
      cells
        .map((cell, column) => cell.padEnd(widths[column]!))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

function cellsOf(run: Run): string[] {
  const [first = '', ...others] = run.files;
  const files = others.length > 0 ? `${first} and ${others.length} more` : first;
  return [run.id, run.state, count(run.rows), count(pendingOf(run)), new URL(run.baseUrl).host, plainLine(files)];
}

async function remove({ args, options, stdin, stderr, env }: Invocation, session: Session): Promise<number> {
  const run = await findRun(session, args[0]);
  if (!isSealed(run.state) && run.state !== 'preparing') {
    throw new ExpungeError('USAGE', `run ${run.id} is ${run.state}; only a run that has ended can be removed`, {
      next: `end it first: expunge cancel ${run.id}`,
    });
  }
  const question = `Remove run ${run.id} (${count(run.rows)} rows) from Redis?`;
  await confirmYes(question, options.yes === true, { stdin, stderr, env, stdinIsData: false });
  const noted = { at: Date.now(), action: 'remove', by: 'operator', who: whoAmI(), reason: reasonOf(options) } as const;
  await noteTargetAction(session.redis, run.fp, { ...noted, run: run.id });
  await removeRun(session.redis, run);
  stderr.write(`Removed run ${run.id}; its report files stay.\n`);
  return 0;
}
