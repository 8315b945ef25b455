import { duration, rate, timeOfDay } from '../format.ts';
import type { Pin, TargetState } from '../limiter/read-target.ts';
import { rateText } from '../model/rate.ts';
import { plainLine } from './style.ts';

/**
 * What keeps a target from its rate until it is over or an operator lifts it, a line each: what the server asked for, and an open circuit.
 * `now`: ms since 1970. Pure.
 */
export function heldLines(targets: readonly TargetState[], now: number): string[] {
  return targets.flatMap(({ scope, hold, outage, advised }) => {
    const of = scope === 'all' ? '' : `${scope}: `;
    return [
      ...(hold
        ? [`${of}nothing is sent until ${timeOfDay(now + hold.leftMs, now)} (${duration(hold.leftMs)}): ${hold.reason}`]
        : []),
      ...(advised === null ? [] : [`${of}at most ${rate(advised)}: the server says that no more is left of its limit`]),
      ...(outage ? [`${of}circuit open since ${timeOfDay(outage.since, now)}: ${outage.reason}`] : []),
    ].map(plainLine);
  });
}

/** `pinned to 200/s by ana: they asked for it`. */
export function pinText({ rate, who, reason }: Pin): string {
  return plainLine(`pinned to ${rateText(rate)} by ${who}${reason ? `: ${reason}` : ''}`);
}
