import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { haltRules } from '../guard/thresholds.ts';
import { haltExamples } from '../ledger/halt-examples.ts';
import { readMeasures } from '../ledger/measures.ts';
import { activeMsOf, isSealed, type Run, readRun } from '../ledger/run.ts';
import { exitOf, summaryOf } from '../ledger/summary.ts';
import { sealTally } from '../ledger/tally.ts';
import { LivePanel } from '../terminal/live-panel.ts';
import { paceLines, paceSummary } from '../terminal/pace-summary.ts';
import { panelText } from '../terminal/panel.ts';
import { plainLine, styleOf } from '../terminal/style.ts';
import type { Invocation } from './command.ts';
import { findRun } from './find-run.ts';
import { listenForInterrupts } from './interrupts.ts';
import { type Session, sayOn, withRedis } from './session.ts';
import { readAround, SnapshotTaker } from './take-snapshot.ts';

const lookEveryMs = 250;

/** How a run stands, once or until it ends. Exit 0: whether the run went well is told by its numbers. */
export async function execute(invocation: Invocation): Promise<number> {
  const { args, options, stdout, stderr } = invocation;
  return withRedis(invocation, options.json ? () => {} : sayOn(stderr), async (session) => {
    const found = await findRun(session, args[0]);
    const run = options.watch ? await watch(invocation, session, found) : await tallied(session, found);
    if (options.json) stdout.write(`${JSON.stringify(summaryOf(run, exitOf(run), Date.now()))}\n`);
    else if (!options.watch) stdout.write(`${await statusText(session, run, stdout)}\n`);
    return 0;
  });
}

async function tallied({ redis }: Session, run: Run): Promise<Run> {
  return isSealed(run.state) ? sealTally(redis, run) : run;
}

async function statusText({ redis }: Session, run: Run, stdout: NodeJS.WriteStream): Promise<string> {
  const examples = await haltExamples(redis, run, haltRules);
  const taker = new SnapshotTaker(run, null);
  taker.seeAround(await readAround(redis, run));
  // Shown once, so nothing is cut off: a reason may be longer than a line.
  const panel = panelText(taker.take(), Number.POSITIVE_INFINITY, styleOf(stdout));
  const lines = [
    ...(examples.length > 0 ? [`for example: ${examples.map(plainLine).join('  ')}`] : []),
    ...(run.priority === 'normal' ? [] : [`priority ${run.priority}`]),
    ...(run.treat ? [`answers: ${run.treat.replaceAll(',', ', ')}`] : []),
    ...(await pace(redis, run)),
    `submitted by ${run.createdBy}${run.note ? `, because: ${run.note}` : ''}`,
    ...expiry(run),
  ];
  return [panel, ...lines.map((line) => `  ${line}`)].join('\n');
}

/** Of a run that has ended: how fast it was. */
async function pace(redis: Redis, run: Run): Promise<string[]> {
  if (!isSealed(run.state)) return [];
  return paceLines(paceSummary(await readMeasures(redis, run.id), activeMsOf(run, Date.now())));
}

function expiry(run: Run): string[] {
  if (!isSealed(run.state)) return [];
  return [
    `Redis forgets it on ${new Date(run.endedAt + run.keepMs).toISOString().slice(0, 10)}; its report files stay`,
  ];
}

async function watch({ stderr, env }: Invocation, session: Session, run: Run): Promise<Run> {
  const taker = new SnapshotTaker(run, null);
  const panel = new LivePanel(stderr, env, () => taker.take());
  const interrupts = listenForInterrupts(() => {});
  let last = run;
  panel.start();
  while (!interrupts.signal.aborted && !isSealed(last.state)) {
    const now = await readRun(session.redis, run.id).catch(() => undefined);
    taker.see(now);
    taker.seeAround(await readAround(session.redis, run).catch(() => undefined));
    if (now === null) break;
    last = now ?? last;
    await sleep(lookEveryMs, undefined, { signal: interrupts.signal }).catch(() => {});
  }
  last = await tallied(session, last);
  taker.see(last);
  panel.stop();
  interrupts.dispose();
  return last;
}
