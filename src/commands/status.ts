import { setTimeout as sleep } from 'node:timers/promises';
import { namedTarget } from '../config/check-target.ts';
import { ExpungeError } from '../errors.ts';
import { plural, timeOfDay } from '../format.ts';
import { undeliveredMs } from '../ledger/active-time.lua.ts';
import { auditFacts, readAudit, readTargetAudit } from '../ledger/audit.ts';
import { haltExamples } from '../ledger/halt-rules.ts';
import { isLive, knownTargets } from '../ledger/known-targets.ts';
import { readMeasures } from '../ledger/measures.ts';
import { activeMsOf, isSealed, type Run, readRun } from '../ledger/run.ts';
import { exitOf, summaryOf } from '../ledger/summary.ts';
import { sealTally } from '../ledger/tally.ts';
import { haltRules } from '../ledger/thresholds.ts';
import { learnedStart, readPin, readTargetState, scopesOf } from '../limiter/read-target.ts';
import { readStops, type Stop, stopAdvice, stopText, type TargetStops } from '../limiter/stop.ts';
import { paceOf, rateSetting } from '../model/rate.ts';
import { nearestFirst } from '../model/suggest.ts';
import type { Target } from '../model/target.ts';
import type { RedisClient } from '../redis/client.ts';
import { LivePanel } from '../terminal/live-panel.ts';
import { paceLines, paceSummary } from '../terminal/pace.ts';
import { panelText } from '../terminal/panel.ts';
import { paceText } from '../terminal/plan-text.ts';
import { commandFor, notReachedText, targetName } from '../terminal/stop-text.ts';
import { plainLine, styleOf } from '../terminal/style.ts';
import { auditText, pinText, throttleLines } from '../terminal/target-events.ts';
import { type Invocation, jsonLines } from './command.ts';
import { isAbandoned } from './foreground.ts';
import { listenForInterrupts } from './interrupts.ts';
import { day, describeReportLocation } from './report-location.ts';
import { findRun, progressOn, type Session, sayOf, withRedis } from './session.ts';
import { readRunContext, SnapshotTaker } from './take-snapshot.ts';

const pollMs = 250;

/** How a run stands, once or until it ends; without a run, how the target stands. Exit 0: whether the run went well is told by its numbers. */
export async function execute(invocation: Invocation): Promise<number> {
  const { args, options, stdout, verbosity } = invocation;
  if (args.length === 0) refuseUnlessTarget(invocation);
  return withRedis(invocation, options.json ? () => {} : sayOf(invocation), async (session) => {
    if (args.length === 0) return targetStatus(invocation, session);
    const found = await findRun(session, args[0]);
    const run = options.watch ? await watch(invocation, session, found) : await tallied(session, found);
    if (options.json) await writeJson(invocation, session, run);
    else if (!options.watch || verbosity === 'quiet') stdout.write(`${await statusText(session, run, invocation)}\n`);
    return 0;
  });
}

async function tallied({ redis }: Session, run: Run): Promise<Run> {
  return isSealed(run.state) ? sealTally(redis, run) : run;
}

function refuseUnlessTarget({ config, options }: Invocation): void {
  if (config.baseUrl !== undefined && !options.watch) return;
  throw new ExpungeError('USAGE', 'expected a run, got none', {
    next: 'expunge runs lists them; expunge status --base-url URL shows the state of a target',
  });
}

/** With --audit the trail comes first, one line an entry; the last line is the summary, as everywhere. */
async function writeJson({ options, stdout }: Invocation, session: Session, run: Run): Promise<void> {
  const print = jsonLines(stdout, true);
  if (options.audit)
    for (const entry of await readAudit(session.redis, run)) print('audit', { run: run.id, ...auditFacts(entry) });
  const { stops, refused, isAbandoned } = await readContext(session, run);
  const told = withStandstill(run, stops.target, { refused, isAbandoned });
  stdout.write(`${JSON.stringify(summaryOf(told, exitOf(run), Date.now()))}\n`);
}

/** What explains the pace of a run that other processes work on, and whether any does. */
async function readContext(session: Session, run: Run) {
  const [context, abandoned] = await Promise.all([readRunContext(session.redis, run), isAbandoned(session, run)]);
  return { ...context, isAbandoned: abandoned };
}

const shownActions = 3;

/** The whole trail, or its last few entries. */
async function auditLines({ redis }: Session, run: Run, isWhole: boolean, isQuiet: boolean): Promise<string[]> {
  const trail = await readAudit(redis, run);
  if (isWhole) return auditText(trail);
  const hidden = Math.max(0, trail.length - 1 - shownActions); // the first one, the submission, has a line of its own
  const how = isQuiet ? '' : `: expunge status ${run.id} --audit`;
  const more = hidden > 0 ? [`${plural(hidden, 'earlier actions')}${how}`] : [];
  return [...more, ...auditText(trail, Math.min(shownActions, trail.length - 1))];
}

async function statusText(session: Session, run: Run, { options, stdout, verbosity }: Invocation): Promise<string> {
  const { redis } = session;
  const isQuiet = verbosity === 'quiet';
  const examples = await haltExamples(redis, run, haltRules);
  const taker = new SnapshotTaker(run, null);
  const context = await readContext(session, run);
  taker.observeContext(context);
  // Shown once, so nothing is cut off: a reason may be longer than a line.
  const panel = panelText(taker.take(), Number.POSITIVE_INFINITY, styleOf(stdout));
  const lines = [
    ...(context.isAbandoned && !isQuiet
      ? [`resume: ${run.command}`, `or detach it: expunge resume ${run.id} --detach`]
      : []),
    ...doubt(run),
    ...(examples.length > 0 ? [`for example: ${examples.map(plainLine).join('  ')}`] : []),
    ...(run.priority === 'normal' ? [] : [`priority ${run.priority}`]),
    ...(run.onStatus ? [`on status: ${run.onStatus.replaceAll(',', ', ')}`] : []),
    ...(await pace(redis, run)),
    `submitted by ${run.createdBy}${run.note ? `, because: ${run.note}` : ''}`,
    ...(await expiry(run, isQuiet)),
    ...(await auditLines(session, run, options.audit === true, isQuiet)),
  ];
  return [panel, ...lines.map((line) => `  ${line}`)].join('\n');
}

/** Of a run that has ended: how fast it was. */
async function pace(redis: RedisClient, run: Run): Promise<string[]> {
  if (!isSealed(run.state)) return [];
  return paceLines(paceSummary(await readMeasures(redis, run.id), activeMsOf(run, Date.now())));
}

/** Why some of what is gone can't be called absent. */
function doubt({ doubt, doubtSince }: Run): string[] {
  return doubtSince > 0 ? [`in doubt since ${timeOfDay(doubtSince, Date.now())}: ${plainLine(doubt)}`] : [];
}

/** How long what is known of it stays; of its files only where they can be seen from here. */
async function expiry(run: Run, isQuiet: boolean): Promise<string[]> {
  if (!isSealed(run.state)) return [];
  const keptMs = run.delivered > 0 ? run.keepMs : Math.max(run.keepMs, undeliveredMs);
  const forgets = `Redis forgets it on ${day(run.endedAt + keptMs)}`;
  if (run.reportIn !== '') return [`${forgets}; ${await describeReportLocation(run)}`];
  const keep = isQuiet ? '' : `; to keep that: expunge report ${run.id} --output FILE`;
  return [`${forgets}, and what happened to each row${keep}`];
}

async function watch(invocation: Invocation, session: Session, run: Run): Promise<Run> {
  const taker = new SnapshotTaker(run, null);
  const panel = new LivePanel(progressOn(invocation), invocation.env, () => taker.take());
  const interrupts = listenForInterrupts(invocation, () => {});
  let last = run;
  panel.start();
  while (!interrupts.signal.aborted && !isSealed(last.state)) {
    const now = await readRun(session.redis, run.id).catch(() => undefined);
    taker.observe(now);
    taker.observeContext(await readContext(session, last).catch(() => undefined));
    if (now === null) break;
    last = now ?? last;
    await sleep(pollMs, undefined, { signal: interrupts.signal }).catch(() => {});
  }
  last = await tallied(session, last);
  taker.observe(last);
  panel.stop();
  interrupts.dispose();
  return last;
}

const shownTargetActions = 5;

/** How a target stands: what stops or holds it, where its rate begins, and what was done to all of it. */
export async function targetStatus(
  { config, options, stdout, verbosity }: Invocation,
  { redis }: Session,
): Promise<number> {
  const target = namedTarget(config);
  const [status, trail] = await Promise.all([
    readTargetStatus(redis, target, config.separateLimits),
    readTargetAudit(redis, target.fp),
  ]);
  const print = jsonLines(stdout, options.json);
  const names = { target: target.baseUrl, account: target.account };
  if (options.audit) for (const entry of trail) print('audit', { ...names, ...auditFacts(entry) });
  print('target', targetStatusFacts(status));
  if (!options.json) {
    const lines = [
      ...targetStatusLines(status, verbosity === 'quiet'),
      ...(await unknownTargetLines(redis, status, 'status')),
      ...auditText(options.audit ? trail : trail.slice(-shownTargetActions)),
    ];
    stdout.write(`${[`Target ${targetName(target)}`, ...lines].join('\n  ')}\n`);
  }
  return 0;
}

/** What is known of a target at a moment. */
export type TargetStatus = Awaited<ReturnType<typeof readTargetStatus>>;

export async function readTargetStatus(redis: RedisClient, target: Target, separateLimits: boolean) {
  const reads = [readStops(redis, target.fp), readTargetState(redis, target.fp), readPin(redis, target.fp)] as const;
  const [stops, limiters, pin] = await Promise.all(reads);
  return {
    target,
    stops,
    limiters,
    pin,
    learned: learnedStart(limiters, scopesOf({ separateLimits }), pin && paceOf(pin.rate)),
  };
}

/** What is told of a target that Redis knows nothing of, and which ones are live: most likely one of those was meant. */
export async function unknownTargetLines(
  redis: RedisClient,
  { target, limiters }: TargetStatus,
  verb: string,
): Promise<string[]> {
  if (limiters.length > 0) return [];
  const known = await knownTargets(redis);
  if (known.some(({ fp }) => fp === target.fp)) return [];
  const live = nearestFirst(known.filter(isLive), target);
  const words = 'nothing was ever sent there through this Redis';
  return [live.length > 0 ? `${words}; these are live:\n${notReachedText(verb, live)}` : words];
}

/** For `--json`. Times are ISO 8601. */
export function targetStatusFacts({ target, stops, limiters, pin, learned }: TargetStatus): Record<string, unknown> {
  const { baseUrl, account } = target;
  const time = (ms: number) => new Date(ms).toISOString();
  return {
    ...{ target: baseUrl, account, stop: stops.target },
    ...{ processes: stops.alive, stopped_processes: stops.processes.length, per_second: learned?.perSecond ?? null },
    pinned: pin && { ...pin, rate: rateSetting(pin.rate), at: time(pin.at) },
    limiters: limiters.map(({ scope, at, rate, advised, hold, outage }) => ({
      ...{ scope, per_second: rate, advised_per_second: advised },
      hold: hold && { reason: hold.reason, until: time(at + hold.leftMs) },
      outage: outage && { reason: outage.reason, since: time(outage.since) },
    })),
  };
}

export function targetStatusLines({ target, stops, limiters, pin, learned }: TargetStatus, isQuiet: boolean): string[] {
  const held = throttleLines(limiters, Date.now());
  return [
    ...stopLines(stops, target),
    ...held,
    ...(held.length > 0 && !isQuiet ? [`release it: ${commandFor('target release', target)}`] : []),
    ...(pin === null ? [] : [pinText(pin)]),
    paceText(null, learned) || 'its limit is not known yet',
  ];
}

function stopLines({ target: stop, processes }: TargetStops, target: Target): string[] {
  const all = [stop, ...processes].filter((stop) => stop !== null);
  return all.length === 0
    ? ['not stopped']
    : all.map((one) => plainLine(stopAdvice(one, commandFor('start-all', target))));
}

/** Why a run may stand still: `refused` says why Redis takes no writes; `isAbandoned`: the command that worked on it has ended. */
type Standstill = { refused?: string; isAbandoned?: boolean };

/** For a summary: a run that is `running` and stands still all the same has that as its reason. */
export function withStandstill(
  run: Run,
  stop: Stop | null,
  { refused = '', isAbandoned = false }: Standstill = {},
): Run {
  if (run.state !== 'running') return run;
  if (isAbandoned) return { ...run, reason: 'its command has ended and no process is deleting it' };
  if (stop !== null) return { ...run, reason: stopText(stop) };
  return refused === '' ? run : { ...run, reason: `Redis rejects writes: ${refused}` };
}
