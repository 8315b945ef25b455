import { namedTarget } from '../config/check-target.ts';
import { oneOf } from '../config/parse-setting.ts';
import { ExpungeError, exitCodes, messageOf } from '../errors.ts';
import { count, isoTime, plural } from '../format.ts';
import { shown } from '../input/input-error.ts';
import { type FoundRow, type FoundRows, findId, type Wanted } from '../ledger/find-id.ts';
import { runsOfTarget } from '../ledger/list-runs.ts';
import { type Run, readRun } from '../ledger/run.ts';
import { readProof } from '../ledger/verification.ts';
import { type Resource, resources } from '../model/resource.ts';
import type { Target } from '../model/target.ts';
import type { RedisClient } from '../redis/client.ts';
import { explainText, whyText } from '../terminal/explain-text.ts';
import { startProgress } from '../terminal/live-panel.ts';
import { targetName } from '../terminal/stop-text.ts';
import { plainLine, styleOf } from '../terminal/style.ts';
import { type Invocation, jsonLines } from './command.ts';
import { progressOn, refuseOtherRelease, type Session, sayUnlessJson, withRedis } from './session.ts';

/** Tells what became of an id in each run of the target, the newest first. Reads only; throws USAGE if no run has it. */
export async function execute(invocation: Invocation): Promise<number> {
  const wanted = readWanted(invocation);
  const say = sayUnlessJson(invocation);
  return withRedis(invocation, say, (session) => explain(invocation, session, wanted));
}

/** The id of a command line. Throws USAGE for what is no resource. */
export function readWanted({ args }: Invocation): Wanted {
  return { resource: readResource(args[0]!), id: args[1]! };
}

function readResource(text: string): Resource {
  try {
    return oneOf(resources)(text);
  } catch (error) {
    throw new ExpungeError('USAGE', messageOf(error), { next: `for example: expunge explain ${resources[0]} ID` });
  }
}

async function explain(invocation: Invocation, { redis }: Session, wanted: Wanted): Promise<number> {
  const { config, env, stderr } = invocation;
  const target = namedTarget(config);
  const searched = { runs: 0, rows: 0 };
  const onProblem = (words: string) => void stderr.write(`warning: ${words}\n`);
  const text = () => `Searching ${targetName(target)}: ${plural(searched.runs, 'runs')}, ${count(searched.rows)} rows`;
  const start = () => startProgress(progressOn(invocation), env, text);
  let progress = start();
  let isFound = false;
  try {
    for await (const appearance of searchRuns({ redis, target, wanted, searched, onProblem })) {
      progress.stop(); // it would draw over the result
      showAppearance(invocation, appearance);
      progress = start();
      isFound = true;
    }
  } finally {
    progress.stop();
  }
  if (isFound) return exitCodes.OK.exit;
  throw noRunHas({ target, wanted, searched });
}

/** USAGE: what was looked for, and where. */
export function noRunHas({ target, wanted, searched }: Pick<Search, 'target' | 'wanted' | 'searched'>): ExpungeError {
  const what = `${wanted.resource} ${shown(wanted.id)}`;
  const where = `${targetName(target)} (${plural(searched.runs, 'runs')} searched)`;
  return new ExpungeError('USAGE', `no run has ${what} on ${where}`, {
    next: 'compare id, resource, --base-url and --account; expunge runs lists the runs that Redis still has',
  });
}

/** The rows of an id in a run, and how far a `deleted` of that run can be trusted; see `readProof`. */
export type Appearance = { run: Run; found: FoundRows; proof: string[] };

export type Search = {
  redis: RedisClient;
  target: Target;
  wanted: Wanted;
  searched: { runs: number; rows: number }; // grow
  onProblem: (words: string) => void; // called for a run that cannot be read: the others can
  stop?: AbortSignal;
};

/** The runs that have the id, the newest first. Once `stop` is aborted it reads no further and throws the reason. */
export async function* searchRuns(search: Search): AsyncGenerator<Appearance> {
  const { redis, target, wanted, searched, onProblem, stop } = search;
  const onRows = (n: number) => {
    stop?.throwIfAborted();
    searched.rows += n;
  };
  for await (const page of runsOfTarget(redis, target)) {
    for (const { id } of page) {
      const run = await readRun(redis, id);
      if (run === null) continue; // it expired meanwhile
      searched.runs += 1;
      const found = await searchRun(redis, run, wanted, onRows).catch((error) => {
        if (!(error instanceof ExpungeError)) throw error;
        onProblem(`run ${id} is not searched: ${plainLine(error.message)}`);
        return null;
      });
      if (found !== null && found.rows.length > 0) yield { run, found, proof: await readProof(redis, run) };
    }
  }
}

async function searchRun(redis: RedisClient, run: Run, wanted: Wanted, onRows: (n: number) => void) {
  refuseOtherRelease(run);
  return findId(redis, run, wanted, onRows);
}

export function showAppearance({ options, stdout }: Invocation, { run, found, proof }: Appearance): void {
  const now = Date.now();
  const look = { style: styleOf(stdout), columns: stdout.columns || Number.POSITIVE_INFINITY };
  if (!options.json) stdout.write(`${explainText(run, { ...found, proof }, now, look)}\n`);
  const line = jsonLines(stdout, options.json);
  for (const facts of appearancesIn(run, found, now)) line('appearance', facts);
}

/** The rows of a run with the id, for `--json` and the API. */
export function appearancesIn(run: Run, { rows }: FoundRows, now: number): Record<string, unknown>[] {
  return rows.map((row) => ({ run: run.id, state: run.state, ...factsOf(row), why: whyText(run, row, now) }));
}

function factsOf({ settledAt, open, ...row }: FoundRow): Record<string, unknown> {
  const waits = open && {
    in_flight: open.isInFlight,
    in_doubt: open.inDoubt,
    next_try_at: open.nextTryAt === null ? null : isoTime(open.nextTryAt),
  };
  return { ...row, settled_at: settledAt, open: waits };
}
