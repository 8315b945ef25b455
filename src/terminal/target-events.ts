import { count, duration, rate, timeOfDay, utcTime } from '../format.ts';
import { type AuditEntry, auditLength } from '../ledger/audit.ts';
import type { Pin, TargetState } from '../limiter/read-target.ts';
import { rateText } from '../model/rate.ts';
import { columns, plainLine } from './style.ts';

/** Something about the target that people should hear of: the message is a constant, the reason has the numbers. */
export type TargetEvent = { message: string; reason: string };

/** For a panel; logs keep the two apart. */
export function eventText({ message, reason }: TargetEvent): string {
  return `${message}: ${reason}`;
}

const tellAgainAfterMs = 60_000;
const shortestHoldMs = 2_000;
const surelyMetAfterMs = 5_000; // before that, the limit may turn out to be trouble of another kind

/**
 * Compares what is known of a target with what was known before, and tells what has changed: the first limit, outages, waits, tokens.
 * Waits and tokens, which may come every few seconds, are told once a minute. The end of what was told is told, too.
 */
export class TargetEvents {
  readonly #before = new Map<string, TargetState>();
  readonly #met = new Map<string, { since: number; isTold: boolean }>(); // the limit, by scope
  readonly #toldHolds = new Map<string, number>(); // since when, by scope
  readonly #toldAt = new Map<string, number>();
  #refreshes = 0;

  /** `targets`: its limiters as they are now. `refreshes`: how many tokens took the place of another so far. `nowMs`: monotonic. */
  observe(targets: readonly TargetState[], refreshes: number, nowMs: number): TargetEvent[] {
    const events = targets.flatMap((now) => this.#compare(this.#before.get(now.scope) ?? null, now, nowMs));
    for (const now of targets) this.#before.set(now.scope, now);
    const isRefreshed = refreshes > this.#refreshes && this.#mayTell('token', nowMs);
    this.#refreshes = refreshes;
    return isRefreshed ? [...events, { message: 'token refreshed', reason: `${count(refreshes)} × so far` }] : events;
  }

  #compare(before: TargetState | null, now: TargetState, nowMs: number): TargetEvent[] {
    return [...this.#limitEvents(before, now), ...outageEvents(before, now), ...this.#holdEvents(now, nowMs)];
  }

  #limitEvents(before: TargetState | null, { scope, limitMet, outage, at }: TargetState): TargetEvent[] {
    const met = this.#met.get(scope) ?? { since: at, isTold: before === null && limitMet > 0 };
    if (limitMet === 0 || outage !== null) met.since = at;
    this.#met.set(scope, met);
    if (met.isTold || at - met.since < surelyMetAfterMs) return [];
    met.isTold = true;
    return [{ message: 'limit reached', reason: `the server throttles above about ${rate(limitMet)}` }];
  }

  #holdEvents({ scope, hold, at }: TargetState, nowMs: number): TargetEvent[] {
    const since = this.#toldHolds.get(scope);
    if (hold === null && since !== undefined) {
      this.#toldHolds.delete(scope);
      return [{ message: 'resumed', reason: `after waiting for ${duration(at - since)}` }];
    }
    if (hold === null || since !== undefined || hold.leftMs < shortestHoldMs) return [];
    if (!this.#mayTell(`hold ${scope}`, nowMs)) return [];
    this.#toldHolds.set(scope, at);
    return [{ message: 'waiting', reason: `${hold.reason}; no id uses up an attempt` }];
  }

  #mayTell(what: string, nowMs: number): boolean {
    const toldAt = this.#toldAt.get(what);
    if (toldAt !== undefined && nowMs - toldAt < tellAgainAfterMs) return false;
    this.#toldAt.set(what, nowMs);
    return true;
  }
}

function outageEvents(before: TargetState | null, now: TargetState): TargetEvent[] {
  const was = before?.outage ?? null;
  if (was === null && now.outage !== null) return [{ message: 'outage', reason: now.outage.reason }];
  if (was === null || now.outage !== null) return [];
  return [{ message: 'outage over', reason: `it lasted ${duration(now.at - was.since)}` }];
}

/** The last entries of a trail (the oldest first), or all, in aligned lines: when, what, by whom, why. */
export function auditText(trail: readonly AuditEntry[], shown = trail.length): string[] {
  if (trail.length === 0 || shown === 0) return [];
  const isWhole = trail[0]!.action === 'submit' && trail.length <= auditLength; // else the first start may have gone
  const first = isWhole ? trail.findIndex(({ action }) => action === 'start') : -1;
  const rows = trail.map((entry, i) => rowOf(entry, i === first));
  return columns(rows.slice(-shown)).split('\n');
}

/** The facts that an action has beside the common ones stand behind it: `rate 200/s`, `halt forbidden`. */
function rowOf({ at, action, by, who, reason, ...facts }: AuditEntry, isFirstStart: boolean): string[] {
  const what = [action === 'start' && !isFirstStart ? 'go on' : action, ...Object.entries(facts).map(factText)]
    .filter(Boolean)
    .join(' ');
  return [utcTime(at, 'second'), what, who || by, reason].map((cell) => plainLine(cell));
}

/** The name of a fact is left out where its value tells enough. */
function factText([name, value]: [string, unknown]): string {
  if (value === true) return name;
  if (name === 'burst') return value === null ? '' : `burst ${value}`;
  return value === null ? 'none' : String(value);
}

/**
 * What keeps a target from its rate until it is over or an operator lifts it, a line each: what the server asked for, and an open circuit.
 * `now`: ms since 1970. Pure.
 */
export function throttleLines(targets: readonly TargetState[], now: number): string[] {
  return targets.flatMap(({ scope, hold, outage, advised }) => {
    const of = scope === 'all' ? '' : `${scope}: `;
    return [
      ...(hold
        ? [`${of}nothing is sent until ${timeOfDay(now + hold.leftMs, now)} (${duration(hold.leftMs)}): ${hold.reason}`]
        : []),
      ...(advised === null
        ? []
        : [`${of}at most ${rate(advised)}: the server reports that its limit is almost used up`]),
      ...(outage ? [`${of}circuit open since ${timeOfDay(outage.since, now)}: ${outage.reason}`] : []),
    ].map(plainLine);
  });
}

/** `pinned to 200/s by ana: they asked for it`. */
export function pinText({ rate, who, reason }: Pin): string {
  return plainLine(`pinned to ${rateText(rate)} by ${who}${reason ? `: ${reason}` : ''}`);
}
