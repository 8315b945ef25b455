import { count, duration, plural, timeOfDay } from '../format.ts';
import { type KnownTarget, liveRuns } from '../ledger/known-targets.ts';
import { farthestMs, type Stop } from '../limiter/stop.ts';
import { commandFor, type Target } from '../model/target.ts';
import type { ToType } from '../model/to-type.ts';
import { visibleLine } from '../model/visible.ts';
import { stopTime } from '../redis/distance.ts';

// Texts of stop-all and start-all. All pure; times are ms since 1970.

/** A target that was stopped or started: its stop before, whether that changed anything, and its state now. */
export type StopResult = { before: Stop | null; isChanged: boolean; known: KnownTarget };

/** `https://api.example.com as account acme`. */
export function targetName({ baseUrl, account }: Target): string {
  return account ? `${baseUrl} as account ${visibleLine(account)}` : baseUrl;
}

export function stoppedText(
  { before, isChanged, known }: StopResult,
  now: number,
  { toType, isQuiet = false }: { toType: ToType; isQuiet?: boolean },
): string {
  const name = targetName(known);
  const done =
    before === null
      ? `Stopped all runs of ${name}. Sending stops within ${stopTime(farthestMs(known.stops))}.`
      : `All runs of ${name} are stopped already, ${byWhom(before)}, since ${timeOfDay(before.at, now)}.${isChanged ? ' Your stop is kept as well.' : ''}`;
  const next = isQuiet ? '' : `\n  Resume: ${commandFor(toType, 'start-all', known)}`;
  return `${done}\n  It reaches ${liveText(known)}.${next}`;
}

export function startedText({ before, known }: StopResult, now: number, toType: ToType): string {
  const held = known.stops.processes.map((stop) => `\nwarning: one process stays stopped ${byWhom(stop)}`).join('');
  if (before === null) return `The runs of ${targetName(known)} were not stopped.${held}`;
  const left = known.stops.target;
  if (left !== null)
    return `The runs of ${targetName(known)} stay stopped ${byWhom(left)}.\n  Lift that stop as well: ${commandFor(toType, 'start-all', known)}${held}`;
  const ago = duration(Math.max(0, now - before.at));
  return `The runs of ${targetName(known)} continue, after ${ago}; they were stopped ${byWhom(before)}.${held}`;
}

/** `2 live runs (1 running, 1 paused) and 3 processes`. */
function liveText(known: KnownTarget): string {
  const states = Object.entries(known.live).map(([state, runs]) =>
    runs === liveRuns(known) ? state : `${count(runs)} ${state}`,
  );
  const apart = states.length > 0 ? ` (${states.join(', ')})` : '';
  const { alive } = known.stops;
  return `${plural(liveRuns(known), 'live runs')}${apart} and ${alive === 1 ? '1 process' : `${count(alive)} processes`}`;
}

const maxNamed = 5;

/** Targets that a command did not reach, one per line, each followed by the command that reaches it. */
export function notReachedText(command: string, missed: readonly KnownTarget[], toType: ToType): string {
  const lines = missed.slice(0, maxNamed).map((known) => {
    const how = command === 'start-all' ? byWhom(known.stops.target!) : liveText(known);
    return `  ${targetName(known)}: ${how}\n    ${commandFor(toType, command, known)}`;
  });
  const more = missed.length - maxNamed;
  return [...lines, ...(more > 0 ? [`  and ${plural(more, 'others')}: ${toType('runs')}`] : [])].join('\n');
}

function byWhom({ who, reason, others = [] }: Stop): string {
  const all = [{ who, reason }, ...others];
  return visibleLine(all.map((one) => `by ${one.who}${one.reason ? `: ${one.reason}` : ''}`).join('; '));
}
