import { count, duration, isoTime, plural } from '../format.ts';
import type { RunChange } from '../ledger/changes.ts';
import { conclusionText, judgeRun } from '../ledger/conclusion.ts';
import { type HaltExample, haltExampleText, haltSelection } from '../ledger/halt-examples.ts';
import type { KeptPlan } from '../ledger/kept-plans.ts';
import type { OutboxEvent, PublishedTroubles } from '../ledger/outbox.ts';
import { countPending, isFinalized, type Run } from '../ledger/run.ts';
import { type Standing, standingAdvice, standingFacts } from '../ledger/standing.ts';
import { toExitCode } from '../ledger/summary.ts';
import type { Loss } from '../ledger/target-actions.ts';
import type { TargetState } from '../limiter/read-target.ts';
import { approverText } from '../model/approver.ts';
import { labelsFrom } from '../model/labels.ts';
import { outcomes, perOutcome } from '../model/outcome.ts';
import type { Target } from '../model/target.ts';
import { toTypeAnywhere } from '../model/to-type.ts';
import { visibleLine } from '../model/visible.ts';

// The events that receivers get. All functions are pure: the same change makes an event with the same id.

/**
 * A change of a run's state. The counts are those when it is passed on; for an ended run, those of its end. `examples`: ids that show why it halted.
 */
export function runEvent(
  run: Run,
  { n, at, state, reason, by, who, halt }: RunChange,
  examples: readonly HaltExample[] = [],
): OutboxEvent {
  const isOver = isFinalized(state);
  const data = {
    run: run.id,
    base_url: run.baseUrl,
    account: run.account,
    state,
    reason: state === 'completed' ? '' : reason,
    ...(state === 'completed' ? {} : { by, who }),
    ...(state === 'halted' ? { halt, exit: toExitCode({ ...run, state, halt }), examples } : {}),
    rows: run.rows,
    pending: countPending(run),
    submitted_by: run.createdBy,
    note: run.note,
    labels: labelsFrom(run.labels),
    ...(isOver ? { ...perOutcome((outcome) => run.counts[outcome]), exit: toExitCode(run) } : {}),
  };
  const why = state === 'completed' ? completedText(run) : reasonText(who || (by === 'guard' ? '' : by), reason);
  const text = `Run ${run.id} on ${hostOf(run)} is ${state}${why}${state === 'halted' ? examplesText(run, examples) : ''}`;
  return { id: `run-${run.id}-${n}`, type: `run.${state}`, timestamp: isoTime(at), data, text };
}

function examplesText(run: Run, examples: readonly HaltExample[]): string {
  const behind = haltSelection(run);
  if (examples.length === 0 || behind === '') return '';
  const all = toTypeAnywhere('report', run.id, '--only', behind);
  return visibleLine(`; for example ${examples.map(haltExampleText).join('; ')}; all of them: ${all}`);
}

/**
 * An event for a run that waits for its start, with its ids, its start and the command that cancels it. `dashboardUrl`: '' = not known.
 */
export function startingEvent(run: Run, { at }: Pick<RunChange, 'at'>, dashboardUrl: string): OutboxEvent {
  const [starts, cancel] = [isoTime(run.startsAt), toTypeAnywhere('cancel', run.id)];
  const url = dashboardUrl === '' ? null : `${dashboardUrl}/runs/${run.id}`;
  const what = `${plural(countPending(run), 'ids')} of ${run.files.join(', ')}`;
  const text = `it starts at ${starts}, and nothing is sent before`;
  const data = {
    run: run.id,
    base_url: run.baseUrl,
    account: run.account,
    state: run.state,
    why: 'grace',
    text,
    until: starts,
    starts_at: starts,
    next: cancel,
    url,
    files: run.files,
    rows: run.rows,
    pending: countPending(run),
    submitted_by: run.createdBy,
    note: run.note,
    labels: labelsFrom(run.labels),
  };
  const by = `${reasonText(run.createdBy, run.note)}`;
  const link = url === null ? '' : ` · ${url}`;
  return {
    id: `waiting-${run.id}-grace-${run.startsAt}`, // once for each start, whether it was paused in between or not
    type: 'run.waiting',
    timestamp: isoTime(at),
    data,
    text: visibleLine(`Run ${run.id}${by} will delete ${what} on ${hostOf(run)}: ${text}. Cancel it: ${cancel}${link}`),
  };
}

/** An event for a run that has made no progress since `since`; the first cause is reported. `at`: ms since 1970, like `since`. */
export function waitingEvent(run: Run, standings: readonly Standing[], since: number, at: number): OutboxEvent {
  const [standing] = standings as [Standing];
  const { why, text, until } = standing;
  const ends = until === null ? '' : ` (until ${isoTime(until)})`;
  const advice = standingAdvice(standing, toTypeAnywhere);
  const facts = {
    run: run.id,
    base_url: run.baseUrl,
    account: run.account,
    state: run.state,
    ...standingFacts(standings, toTypeAnywhere),
    waiting_since: isoTime(since),
    rows: run.rows,
    pending: countPending(run),
    submitted_by: run.createdBy,
    note: run.note,
    labels: labelsFrom(run.labels),
  };
  const words = `Run ${run.id} on ${hostOf(run)} has made no progress for ${duration(at - since)}: ${text}${ends}`;
  return {
    id: `waiting-${run.id}-${why}-${since}`,
    type: 'run.waiting',
    timestamp: isoTime(at),
    data: facts,
    text: visibleLine(advice === '' ? words : `${words}. ${advice}`),
  };
}

/** An event: a plan waits for approval, or was applied or refused. */
export function planEvent(plan: KeptPlan): OutboxEvent {
  const { id, state, decision, name, ids, by, approver, reason, expiresAt } = plan;
  return {
    id: `plan-${id}-${state}`,
    type: `plan.${state}`,
    timestamp: isoTime(decision?.at ?? plan.at),
    data: {
      plan: id,
      ...ofTarget(plan),
      list: name,
      ids,
      planned_by: by,
      approve_by: approver,
      reason,
      expires_at: isoTime(expiresAt),
      ...(decision === null ? {} : { decided_by: decision.who, decision: decision.reason, run: decision.run || null }),
    },
    text: `Plan ${id} of ${visibleLine(by)} to delete ${plural(ids, 'ids')} on ${hostOf(plan)} ${planText(plan)}`,
  };
}

function planText({ id, decision, approver, reason, expiresAt }: KeptPlan): string {
  if (decision !== null) {
    const made = decision.run && `, as run ${decision.run}`;
    return `was ${made === '' ? 'refused' : 'applied'}${reasonText(decision.who, decision.reason)}${made}`;
  }
  const whose = approver === null ? '' : ` for ${approverText(approver)}`;
  const see = toTypeAnywhere('plans', 'show', id);
  return visibleLine(`waits${whose} until ${isoTime(expiresAt)}${reason && `: ${reason}`}. See it: ${see}`);
}

type ScheduleOf = { target: Target; name: string; at: number; reason: string };

/** An event: a guard refused the list of an occurrence. */
export function refusedEvent({ target, name, at, reason }: ScheduleOf, occurrence: number, guard: string): OutboxEvent {
  return {
    id: `schedule-${target.fp}-${name}-refused-${occurrence}`,
    type: 'schedule.refused',
    timestamp: isoTime(at),
    data: { schedule: name, ...ofTarget(target), occurrence: isoTime(occurrence), guard, reason },
    text: `Schedule ${name} on ${hostOf(target)} made no run: its guard "${guard}" refused the list: ${visibleLine(reason)}`,
  };
}

/** An event: a schedule makes no more runs until it is resumed. `guard`: the guard that paused it, '' = a person did. */
export function pausedEvent({ target, name, at, reason }: ScheduleOf, guard: string, who: string): OutboxEvent {
  const by = guard === '' ? who : `its guard "${guard}"`;
  return {
    id: `schedule-${target.fp}-${name}-paused-${at}`,
    type: 'schedule.paused',
    timestamp: isoTime(at),
    data: { schedule: name, ...ofTarget(target), guard: guard || null, who, reason },
    text: `Schedule ${name} on ${hostOf(target)} is paused${reasonText(by, reason)}`,
  };
}

/** An event: occurrences of a schedule made no run, `occurrences` of them in a row by then; `occurrence` is the last of them. */
export function occurrenceEvent(
  { target, name, at, reason }: ScheduleOf,
  trouble: keyof typeof occurrenceTexts,
  occurrence: number,
  occurrences: number,
): OutboxEvent {
  const why = reason && `: ${visibleLine(reason)}`;
  return {
    id: `schedule-${target.fp}-${name}-${trouble}-${occurrence}`,
    type: `schedule.${trouble}`,
    timestamp: isoTime(at),
    data: { schedule: name, ...ofTarget(target), occurrence: isoTime(occurrence), occurrences, reason },
    text: `Schedule ${name} on ${hostOf(target)} ${occurrenceTexts[trouble](occurrences)}${why}`,
  };
}

const occurrenceTexts = {
  failed: () => 'made no run: it got no complete list',
  missed: (occurrences: number) => `missed ${plural(occurrences, 'occurrences')}`,
  skipped: (occurrences: number) => `skipped ${plural(occurrences, 'occurrences')}`,
  empty: (occurrences: number) => `had nothing to do in ${plural(occurrences, 'occurrences')}`,
};

/** An event: the source of a schedule gives a complete list again, after `failed` occurrences. */
export function recoveredOccurrenceEvent(
  { target, name, at }: Omit<ScheduleOf, 'reason'>,
  occurrence: number,
  failed: number,
): OutboxEvent {
  return {
    id: `schedule-${target.fp}-${name}-recovered-${occurrence}`,
    type: 'schedule.recovered',
    timestamp: isoTime(at),
    data: { schedule: name, ...ofTarget(target), occurrence: isoTime(occurrence), failed_occurrences: failed },
    text: `Schedule ${name} on ${hostOf(target)} gets its list again, after ${plural(failed, 'occurrences')} failed`,
  };
}

/** An outage of a target that has begun (`to`) or ended. */
type OutageChange = { from: number | null; to: number | null; reason: string; at: number };

/** The changes of the outage. Throttling does not count as an outage: a used-up window is hit again and again. */
export function outageChanges({ outage: from }: PublishedTroubles, limiter: TargetState | null): OutageChange[] {
  if (limiter === null) return [];
  const { outage, at } = limiter;
  const to = isOutage(outage) ? outage.since : null;
  // An outage that ended and began again between two looks makes two events.
  const ended = from !== null && from !== to ? [{ from, to: null, reason: '', at }] : [];
  const begun = to !== null && from !== to ? [{ from: null, to, reason: outage?.reason ?? '', at }] : [];
  return [...ended, ...begun];
}

function isOutage(outage: TargetState['outage']): outage is NonNullable<TargetState['outage']> {
  return outage?.kind === 'trouble' || outage?.kind === 'unreachable';
}

export function outageEvent(target: Target, { from, to, reason, at }: OutageChange): OutboxEvent {
  const since = to ?? from!;
  const isOver = to === null;
  const what = hostOf(target);
  const lasted = duration(Math.max(0, at - since));
  return {
    id: `outage-${target.fp}-${since}${isOver ? '-over' : ''}`,
    type: isOver ? 'target.recovered' : 'target.outage',
    timestamp: isoTime(isOver ? at : since),
    data: { ...ofTarget(target), since: isoTime(since), ...(isOver ? {} : { reason }) },
    text: isOver
      ? `Outage over: ${what} answers again, after ${lasted}`
      : `Outage: no request to ${what} succeeds: ${visibleLine(reason)}`,
  };
}

/** A target that has accepted nothing for a quarter of an hour (`to`), or accepts requests again. `isAccepting`: whether a request was accepted. */
type StallChange = {
  from: number | null;
  to: number | null;
  ms: number;
  reason: string;
  isAccepting: boolean;
  at: number;
};

/** The changes of the stall. An outage is published as an outage, and does not also become a stall. */
export function stallChanges({ stall: from }: PublishedTroubles, limiter: TargetState | null): StallChange[] {
  if (limiter === null) return [];
  const { stalled, hold, outage, isAccepting, at } = limiter;
  const to = stalled !== null && (from !== null || !isOutage(outage)) ? stalled.since : null;
  const reason = hold?.reason ?? outage?.reason ?? 'each request was refused or failed';
  const change = { reason: '', ms: 0, isAccepting: false, at };
  const ended = from !== null && from !== to ? [{ ...change, from, to: null, isAccepting }] : [];
  const begun = to !== null && from !== to ? [{ ...change, from: null, to, ms: stalled!.ms, reason }] : [];
  return [...ended, ...begun];
}

/** An event about a stall; null if there is nothing to report, because the work ended before anything was accepted. */
export function stallEvent(target: Target, change: StallChange): OutboxEvent | null {
  const { from, to, ms, reason, isAccepting, at } = change;
  const what = hostOf(target);
  const id = `stalled-${target.fp}-${to ?? from}`;
  const data = { ...ofTarget(target), since: isoTime(to ?? from!) };
  if (to !== null) {
    const why = visibleLine(reason);
    return {
      id,
      type: 'target.stalled',
      timestamp: isoTime(at),
      data: { ...data, reason: why },
      text: `Nothing was accepted by ${what} for ${duration(ms)}: ${why}; no id is lost, and the runs keep trying`,
    };
  }
  if (!isAccepting) return null;
  const text = `${what} accepts requests again, after ${duration(Math.max(0, at - from!))}`;
  return { id: `${id}-over`, type: 'target.recovered', timestamp: isoTime(at), data, text };
}

/** An event: Redis has lost data of a target that its workers knew and cannot write again. */
export function lossEvent(target: Target, { id, what, at }: Loss): OutboxEvent {
  return {
    id: `loss-${target.fp}-${id}`,
    type: 'target.data_lost',
    timestamp: isoTime(at),
    data: { ...ofTarget(target), lost: what },
    text: `Redis has lost data of ${hostOf(target)}: ${visibleLine(what)}. Its workers are not ready until someone acknowledges that`,
  };
}

function ofTarget({ baseUrl, account }: Pick<Target, 'baseUrl' | 'account'>) {
  return { base_url: baseUrl, account };
}

function hostOf({ baseUrl, account }: Pick<Target, 'baseUrl' | 'account'>): string {
  return account === '' ? new URL(baseUrl).host : `${new URL(baseUrl).host} (${account})`;
}

function reasonText(who: string, reason: string): string {
  return visibleLine(`${who && ` by ${who}`}${reason && `: ${reason}`}`);
}

function completedText(run: Run): string {
  const fault = conclusionText(judgeRun(run));
  return `${fault && `, but ${fault}`}: ${countsText(run)}`;
}

function countsText({ rows, counts }: Run): string {
  const found = outcomes.filter((outcome) => counts[outcome] > 0);
  return `${plural(rows, 'rows')}: ${found.map((outcome) => `${count(counts[outcome])} ${outcome}`).join(', ') || 'none'}`;
}
