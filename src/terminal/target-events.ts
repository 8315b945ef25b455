import { count, duration, rate, timeOfDay, utcTime } from '../format.ts';
import { type AuditEntry, auditLength } from '../ledger/audit.ts';
import type { MinGrace } from '../ledger/min-grace.ts';
import { isSilent, type TargetLimit, type TargetState } from '../limiter/read-target.ts';
import { boundText, partsOfLimit } from '../model/rate.ts';
import { visibleLine } from '../model/visible.ts';
import { columns } from './style.ts';

/** An event of a target for panel and log: the message is constant, the reason holds the numbers. An event that holds sending back is a warning. */
type TargetEvent = { level: 'info' | 'warn'; message: string; reason: string };

/** An event for the panel; logs keep message and reason apart. */
export function eventText({ message, reason }: Pick<TargetEvent, 'message' | 'reason'>): string {
  return `${message}: ${reason}`;
}

const repeatAfterMs = 60_000;
const minHoldMs = 2_000;
const surelyMetAfterMs = 5_000; // before that, it may be an outage instead

/**
 * Compares the state of a target with its last state, and reports changes: the first limit, outages, waits, tokens. Waits and tokens, which may come
 * every few seconds, are reported at most once a minute. The end of a reported wait is also reported.
 */
export class TargetEvents {
  #before: TargetState | null = null;
  #met: { since: number; isReported: boolean } | null = null; // since when the limit may have been reached
  #waitsSince: number | null = null; // start of the reported wait
  readonly #reportedAt = new Map<string, number>();
  #refreshes = 0;

  /** Returns the events since the last call. `now`: its limiter. `refreshes`: number of token refreshes so far. `nowMs`: monotonic. */
  observe(now: TargetState | null, refreshes: number, nowMs: number): TargetEvent[] {
    const events = now === null ? [] : this.#compare(this.#before, now, nowMs);
    this.#before = now ?? this.#before;
    const isRefreshed = refreshes > this.#refreshes && this.#mayReport('token', nowMs);
    this.#refreshes = refreshes;
    return isRefreshed
      ? [...events, { level: 'info', message: 'token refreshed', reason: `${count(refreshes)} × so far` }]
      : events;
  }

  #compare(before: TargetState | null, now: TargetState, nowMs: number): TargetEvent[] {
    return [...this.#limitEvents(before, now), ...outageEvents(before, now), ...this.#waitEvents(now, nowMs)];
  }

  #limitEvents(before: TargetState | null, { limitFound, outage, at }: TargetState): TargetEvent[] {
    const met = this.#met ?? { since: at, isReported: before === null && limitFound > 0 };
    if (limitFound === 0 || outage !== null) met.since = at;
    this.#met = met;
    if (met.isReported || at - met.since < surelyMetAfterMs) return [];
    met.isReported = true;
    return [
      { level: 'info', message: 'limit reached', reason: `the server throttles above about ${rate(limitFound)}` },
    ];
  }

  #waitEvents({ hold, at }: TargetState, nowMs: number): TargetEvent[] {
    const since = this.#waitsSince;
    if (hold === null && since !== null) {
      this.#waitsSince = null;
      return [{ level: 'info', message: 'resumed', reason: `after waiting for ${duration(at - since)}` }];
    }
    if (hold === null || since !== null || hold.leftMs < minHoldMs) return [];
    if (!this.#mayReport('hold', nowMs)) return [];
    this.#waitsSince = at;
    return [{ level: 'warn', message: 'waiting', reason: `${hold.reason}; no id uses up an attempt` }];
  }

  #mayReport(what: string, nowMs: number): boolean {
    const reportedAt = this.#reportedAt.get(what);
    if (reportedAt !== undefined && nowMs - reportedAt < repeatAfterMs) return false;
    this.#reportedAt.set(what, nowMs);
    return true;
  }
}

function outageEvents(before: TargetState | null, now: TargetState): TargetEvent[] {
  const [was, is] = [outageOf(before), outageOf(now)];
  if (was === null && is !== null) return [{ level: 'warn', message: 'outage', reason: is.reason }];
  if (was === null || is !== null) return [];
  return [{ level: 'info', message: 'outage over', reason: `it lasted ${duration(now.at - was.since)}` }];
}

/** The outage of a target. Throttling does not count: a used-up window is hit again and again. */
function outageOf(target: TargetState | null): TargetState['outage'] {
  const outage = target?.outage ?? null;
  return outage?.kind === 'trouble' || outage?.kind === 'unreachable' ? outage : null;
}

/** The last entries of a trail (oldest first), or all, in aligned lines: when, what, by whom, why. */
export function auditText(trail: readonly AuditEntry[], shown = trail.length): string[] {
  if (trail.length === 0 || shown === 0) return [];
  const isWhole = trail[0]!.action === 'submit' && trail.length <= auditLength; // otherwise the first start may be missing
  const first = isWhole ? trail.findIndex(({ action }) => action === 'start') : -1;
  const rows = trail.map((entry, i) => rowOf(entry, i === first));
  return columns(rows.slice(-shown)).split('\n');
}

/** An entry as cells. The facts of an action follow its name: `rate 200/s`, `halt forbidden`. */
function rowOf({ at, action, by, who, reason, ...facts }: AuditEntry, isFirstStart: boolean): string[] {
  const what = [action === 'start' && !isFirstStart ? 'resume' : action, ...Object.entries(facts).map(factText)]
    .filter(Boolean)
    .join(' ');
  return [utcTime(at, 'second'), what, who || by, reason].map((cell) => visibleLine(cell));
}

/** The name of a fact is omitted if its value is clear without it. */
function factText([name, value]: [string, unknown]): string {
  if (value === true) return name;
  if (name === 'from' || name === 'to') return `${name} ${value}`;
  if (typeof value === 'string' && /^[0-9a-f]{64}$/.test(value)) return `${value.slice(0, 12)}…`; // --json has the whole hash
  return value === null ? 'none' : String(value);
}

/**
 * What slows a target down until it ends or an operator releases it, one per line: waits that the server asked for, and open circuits. `now`: ms
 * since 1970. Pure.
 */
export function throttleLines(limiter: TargetState, now: number): string[] {
  const { hold, advised, stalled } = limiter;
  return [
    ...(stalled ? [`nothing was accepted for ${duration(stalled.ms)}`] : []),
    ...(hold
      ? [`nothing is sent until ${timeOfDay(now + hold.leftMs, now)} (${duration(hold.leftMs)}): ${hold.reason}`]
      : []),
    ...(advised === null ? [] : [`at most ${rate(advised)}: the server reports that its limit is almost used up`]),
    ...outageLines(limiter, now),
  ].map(visibleLine);
}

/** The lines of an outage. If no process uses a limiter, none of its ids is tried: what is known of its outage is old, and its wait is over. */
function outageLines(target: TargetState, now: number): string[] {
  if (target.outage === null) return [];
  const { kind, reason, since } = target.outage;
  if (!isSilent(target)) return [`outage since ${timeOfDay(since, now)}: ${reason}; one id is tried from time to time`];
  return kind === 'held' ? [] : [`in an outage when it was used last, ${duration(target.silentMs)} ago: ${reason}`];
}

/** `grace of at least 10 min by ana: as agreed`. */
export function minGraceText({ ms, who, reason }: MinGrace): string {
  return visibleLine(`grace of at least ${duration(ms)} by ${who}${reason ? `: ${reason}` : ''}`);
}

/** `limit 200/s; 100,000 a day, 250 used; by ana: as agreed`. */
export function limitText({ rate: limit, who, reason, used, until }: TargetLimit, now: number): string {
  const { perSecond, quotas } = partsOfLimit(limit);
  const bounds = [
    ...(perSecond === null ? [] : [rate(perSecond)]),
    ...quotas.map((quota, i) => `${boundText(quota)}, ${count(used[i]!)} used`),
  ];
  const left = until > now ? `; it allows more from ${timeOfDay(until, now)}` : '';
  return visibleLine(`limit ${bounds.join('; ')}${left}; by ${who}${reason ? `: ${reason}` : ''}`);
}
