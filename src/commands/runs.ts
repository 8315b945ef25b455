import { ExpungeError } from '../errors.ts';
import { listRuns } from '../ledger/list-runs.ts';
import { removeRun } from '../ledger/remove-run.ts';
import { isSealed, pendingOf, type Run } from '../ledger/run.ts';
import { exitOf, summaryOf } from '../ledger/summary.ts';
import { confirmYes } from '../terminal/ask.ts';
import { plainLine } from '../terminal/style.ts';
import { columns } from '../terminal/table.ts';
import { count } from '../terminal/words.ts';
import type { Invocation } from './command.ts';
import { findRun } from './find-run.ts';
import { type Session, sayOn, withRedis } from './session.ts';

/** `runs` lists, `runs remove` forgets. */
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
  return columns([['RUN', 'STATE', 'ROWS', 'PENDING', 'TARGET', 'LIST'], ...runs.map(cellsOf)]);
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
  await removeRun(session.redis, run);
  stderr.write(`Removed run ${run.id}; its report files stay.\n`);
  return 0;
}
