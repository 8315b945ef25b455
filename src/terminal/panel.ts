import { count, duration, percent, plural, rate, timeLeft } from '../format.ts';
import { conclusionText } from '../ledger/conclusion.ts';
import type { RunState } from '../ledger/run.ts';
import { idOutcomes, isAlwaysShown, isFailure } from '../model/outcome.ts';
import { rehearsalPrefix } from '../model/rehearsal.ts';
import { visibleLine } from '../model/visible.ts';
import { distanceText, isFar, roundTripText } from '../redis/distance.ts';
import { describePace, heldText } from './pace.ts';
import { foldCommand } from './render-markdown.ts';
import { countSettled, type Snapshot } from './snapshot.ts';
import { clip, plainStyle, type Style, textWidth, wrap, wrapWhole } from './style.ts';

const maxBar = 40;
const shownEvents = 5;
const sentenceLines = 3;

/** The live panel: header, bar, outcomes, current activity and the last events. No line is wider than `width`. */
export function panelText(snapshot: Snapshot, width: number, style: Style = plainStyle): string {
  const lines = [
    header(snapshot, style),
    progress(snapshot, width, style),
    outcomes(snapshot, style),
    ...activityLines(snapshot, width, (text) => wrap(text, width, sentenceLines)),
    ...distanceLines(snapshot, style).flatMap((text) => wrap(text, width, sentenceLines)),
  ];
  const events = snapshot.events.slice(-shownEvents).map((event) => style.dim(visibleLine(event)));
  return [...lines, ...events].map((line) => clip(line, width)).join('\n');
}

/** The panel, shown once: nothing is cut off, and lines wider than `width` are broken between words. */
export function wholePanelText(snapshot: Snapshot, width: number, style: Style): string {
  const activity = activityLines(snapshot, width, (text) => wrapWhole(text, width));
  const distance = distanceLines(snapshot, style).flatMap((text) => wrapWhole(text, width));
  const before = [header(snapshot, style), progress(snapshot, width, style), outcomes(snapshot, style)];
  return [...before, ...activity, ...distance].join('\n');
}

/** A line if Redis is far from a process that deletes the run. */
function distanceLines({ redisMs, state }: Snapshot, style: Style): string[] {
  return state === 'running' && isFar(redisMs) ? [style.yellow(`${distanceText(redisMs)}.`)] : [];
}

/** The activity. A command that does not fit after its sentence is on the next line, in a form that a shell takes. */
function activityLines(snapshot: Snapshot, width: number, broken: (text: string) => string[]): string[] {
  const text = describeActivity(snapshot);
  const command = snapshot.advice.slice(snapshot.advice.indexOf(': ') + 2);
  if (snapshot.advice === '' || textWidth(text) <= width || !text.endsWith(`: ${command}`)) return broken(text);
  const sentence = broken(text.slice(0, -command.length - 1));
  return [...sentence, ...`  ${foldCommand(command, width, 4)}`.split('\n')];
}

/** The panel in one line, for logs and pipes. */
export function lineText(snapshot: Snapshot): string {
  const { runId, ids } = snapshot;
  const settled = countSettled(snapshot);
  const progress = `${percent(settled, ids)}, ${count(settled)} of ${count(ids)}`;
  return [
    `${rehearsalPrefix(snapshot)}${runId}: ${progress}`,
    ...outcomeCounts(snapshot),
    ...pace(snapshot),
    describeActivity(snapshot),
    ...(isFar(snapshot.redisMs) ? [`Redis is ${roundTripText(snapshot.redisMs)} away`] : []),
  ].join(' · ');
}

function header({ runId, host, elapsedMs, rehearsalOf }: Snapshot, style: Style): string {
  return `${style.yellow(rehearsalPrefix({ rehearsalOf }, ' · '))}Run ${runId} · ${style.bold(visibleLine(host))} · ${duration(Math.floor(elapsedMs / 1_000) * 1_000)}`;
}

function progress(snapshot: Snapshot, width: number, style: Style): string {
  const settled = countSettled(snapshot);
  const numbers = [`${count(settled)} / ${count(snapshot.ids)}`, ...pace(snapshot)].join('   ');
  const text = `${percent(settled, snapshot.ids)}   ${numbers}`;
  const size = Math.min(maxBar, width - text.length - 2);
  if (size < 5) return text;
  return `${bar(settled, snapshot.ids, size, style)}  ${text}`;
}

function bar(part: number, whole: number, size: number, style: Style): string {
  const full = whole === 0 ? size : Math.floor((Math.min(part, whole) / whole) * size);
  return style.green('█'.repeat(full)) + style.dim('░'.repeat(size - full));
}

function pace({ state, perSecond, secondsLeft }: Snapshot): string[] {
  if (state !== 'running' || perSecond === null) return [];
  return [rate(perSecond), ...(secondsLeft === null ? [] : [timeLeft(secondsLeft)])];
}

function outcomes(snapshot: Snapshot, style: Style): string {
  const { inFlight } = snapshot;
  const words = outcomeCounts(snapshot, (word) => style.red(word));
  return [...words, ...(inFlight === null ? [] : [`in flight ${count(inFlight)}`])].join(' · ');
}

/** The outcomes of ids that were to be sent; rare ones only if they happened. */
function outcomeCounts({ counts }: Snapshot, emphasize: (word: string) => string = (word) => word): string[] {
  return idOutcomes
    .filter((outcome) => counts[outcome] > 0 || isAlwaysShown(outcome))
    .map((outcome) => {
      const word = `${outcome} ${count(counts[outcome])}`;
      return isFailure(outcome) && counts[outcome] > 0 ? emphasize(word) : word;
    });
}

const windowMs = 5_000;

/** Measures how many ids were settled per second, over the last five seconds. */
export class RateMeter {
  #seen: { at: number; settled: number }[] = [];

  /** Takes a measurement. `at`: milliseconds; `settled`: all ids settled so far. */
  observe(at: number, settled: number): void {
    this.#seen.push({ at, settled });
    while (this.#seen.length > 2 && this.#seen[0]!.at < at - windowMs) this.#seen.shift();
  }

  /** Ids per second; null before the second measurement. */
  get perSecond(): number | null {
    const [first, last] = [this.#seen[0], this.#seen.at(-1)];
    if (!first || !last || last.at === first.at) return null;
    return Math.max(0, ((last.settled - first.settled) * 1_000) / (last.at - first.at));
  }
}

/** Describes the current activity of a run, and its reason. */
export function describeActivity(snapshot: Snapshot): string {
  return visibleLine(activities[snapshot.state](snapshot));
}

const activities: Record<RunState, (snapshot: Snapshot) => string> = {
  preparing: () => 'Writing the list to Redis.',
  planned: () => 'Waiting to start; nothing was sent yet.',
  running: describePace,
  paused: heldState,
  halted: heldState,
  cancelling: (run) => `${heldState(run).replace(/\.$/, '')}${finishing(run)}.`,
  cancelled: (run) => `Cancelled${because(run)}.`,
  completed: describeCompleted,
};

function heldState({ standings, advice, at }: Snapshot): string {
  return heldText(standings[0]!, advice, at);
}

function describeCompleted({ conclusion }: Snapshot): string {
  const fault = conclusionText(conclusion);
  return `Completed${fault && `, but ${fault}`}.`;
}

function because({ who, reason }: Snapshot): string {
  return `${who ? ` by ${who}` : ''}${reason ? `: ${reason.replace(/\.$/, '')}` : ''}`;
}

function finishing({ inFlight }: Snapshot): string {
  return inFlight ? `; finishing ${plural(inFlight, 'requests')}` : '';
}
