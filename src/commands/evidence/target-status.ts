import { namedTarget } from '../../config/check-target.ts';
import { asSentence, count, plural, timeInZone, timeOfDay } from '../../format.ts';
import { auditFacts } from '../../ledger/audit.ts';
import { isLive, type KnownTarget } from '../../ledger/known-targets.ts';
import type { ListedRun } from '../../ledger/list-runs.ts';
import { countPending } from '../../ledger/run.ts';
import { type Cause, causeWords, type Standing, standingAdvice, standingText } from '../../ledger/standing.ts';
import { type Stop, stopAdvice, type TargetStops } from '../../limiter/stop.ts';
import { rateText } from '../../model/rate.ts';
import { nearestFirst } from '../../model/suggest.ts';
import { commandFor, type Target } from '../../model/target.ts';
import type { ToType } from '../../model/to-type.ts';
import { visibleLine } from '../../model/visible.ts';
import {
  standingsOfOpen,
  statusStandings,
  type TargetRecord,
  type TargetStatus,
  targetRecordFacts,
} from '../../operations/target-status.ts';
import { lowRateAdvice, targetCauses } from '../../terminal/pace.ts';
import { paceText } from '../../terminal/plan-text.ts';
import { notReachedText, targetName } from '../../terminal/stop-text.ts';
import { auditText, limitText, minGraceText, throttleLines } from '../../terminal/target-events.ts';
import { type Invocation, jsonLines } from '../command.ts';
import { withOperations } from '../with-operations.ts';

const shownActions = 5;

/** Shows the state of a target: stops, waits, open circuits, its starting rate, and its audit trail. */
export async function targetStatus(invocation: Invocation): Promise<number> {
  const target = namedTarget(invocation.config);
  return withOperations(invocation, 'targets', async (targets) => {
    const record = await targets.record(target);
    return showTarget(
      invocation,
      record,
      await unknownTargetLines(record.status, 'status', targets.known, invocation.toType),
    );
  });
}

/** Prints the state. `unknown`: lines about a target that Redis does not know. */
function showTarget(
  { options, toType, stdout, verbosity }: Invocation,
  record: TargetRecord,
  unknown: readonly string[],
): number {
  const { status, trail } = record;
  const { target } = status;
  const print = jsonLines(stdout, options.json);
  const names = { target: target.baseUrl, account: target.account };
  if (options.audit) for (const entry of trail) print('audit', { ...names, ...auditFacts(entry) });
  print('target', targetRecordFacts(record, toType));
  if (!options.json) {
    const how = { toType, isQuiet: verbosity === 'quiet' };
    const lines = [
      ...targetStatusLines(status, how),
      ...openRunLines(record, how),
      ...unknown,
      ...auditText(options.audit ? trail : trail.slice(-shownActions)),
    ];
    stdout.write(`${[`Target ${targetName(target)} at ${timeInZone(Date.now())}`, ...lines].join('\n  ')}\n`);
  }
  return 0;
}

type How = { toType: ToType; isQuiet: boolean };

/** The runs of the target that have not ended, with what holds each of them back. */
function openRunLines({ status, open: { runs, hasMore } }: TargetRecord, { toType, isQuiet }: How): string[] {
  const ofTarget = new Set(statusStandings(status).map(({ why }) => why));
  const now = Date.now();
  const lines = runs.flatMap((one) => {
    const { run } = one;
    const [standing] = standingsOfOpen(one, status);
    const name = `Run ${run.id} of ${run.files.join(', ')}, by ${run.createdBy}: ${count(countPending(run))} of ${plural(run.ids, 'ids')} left.`;
    const line = visibleLine(
      `${name} ${asSentence(standing === undefined ? paceOfRun(run) : heldText(standing, ofTarget, now))}`,
    );
    const isHalted = run.state === 'halted';
    const look = isHalted ? `See what was answered: ${toType('status', run.id)}` : '';
    const advice = standing === undefined || ofTarget.has(standing.why) ? '' : look || standingAdvice(standing, toType);
    return [line, ...(advice === '' || isQuiet ? [] : [`  ${advice}`])];
  });
  return hasMore ? [...lines, `More runs: ${toType('runs')}`] : lines;
}

function paceOfRun({ rate }: ListedRun): string {
  return rate === null ? 'Running' : `Running, at most ${rateText(rate)}`;
}

/** What holds a run back. A cause of the target itself was described above, so here its name is enough. */
function heldText(standing: Standing, ofTarget: ReadonlySet<Cause>, now: number): string {
  if (ofTarget.has(standing.why)) return `Held: ${causeWords(standing.why)}`;
  const since = standing.since === null || standing.until !== null ? '' : `, since ${timeOfDay(standing.since, now)}`;
  return `${standingText(standing, now)}${since}`;
}

/** Lines for a target that Redis does not know, with the live targets, one of which was most likely meant; none for a known target. */
export async function unknownTargetLines(
  { target, limiter }: TargetStatus,
  command: string,
  readKnown: () => Promise<KnownTarget[]>,
  toType: ToType,
): Promise<string[]> {
  if (limiter !== null) return [];
  const known = await readKnown();
  if (known.some(({ fp }) => fp === target.fp)) return [];
  const live = nearestFirst(known.filter(isLive), target);
  const words = 'nothing was ever sent there through this Redis';
  return [live.length > 0 ? `${words}; these are live:\n${notReachedText(command, live, toType)}` : words];
}

/** The state of a target for people, one fact per line; unless `isQuiet`, with the command that ends a wait. */
export function targetStatusLines(status: TargetStatus, { toType, isQuiet }: How): string[] {
  const { target, stops, limiter, limit, minGrace, learned } = status;
  const held = statusStandings(status).filter(({ why }) => why !== 'stop' && why !== 'stop_file'); // stops have their own lines
  const advice = isQuiet ? [] : held.map((standing) => standingAdvice(standing, toType)).filter(Boolean);
  return [
    ...stopLines(stops, target, toType),
    ...(limiter === null ? [] : throttleLines(limiter, Date.now())),
    // The lines of a limiter describe what holds it.
    ...held.flatMap(({ why, text }) => (targetCauses.includes(why) ? [] : [visibleLine(text)])),
    ...new Set(advice),
    ...(limit === null ? [] : [limitText(limit, Date.now())]),
    ...(minGrace === null ? [] : [minGraceText(minGrace)]),
    `rate: ${paceText(null, learned) || 'nothing is known of its limit yet'}`,
    ...(isQuiet ? [] : [lowRateAdvice(learned, target, toType)].filter(Boolean)),
  ];
}

function stopLines({ target: stop, processes, alive }: TargetStops, target: Target, toType: ToType): string[] {
  const line = (one: Stop) => visibleLine(stopAdvice(one, commandFor(toType, 'start-all', target)));
  const ofOne = processes.length < alive ? `One of ${alive} processes: ` : '';
  return [...(stop === null ? [] : [line(stop)]), ...processes.map((one) => `${ofOne}${line(one)}`)];
}
