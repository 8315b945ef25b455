import cronstrue from 'cronstrue';
import { listOrigins } from '../config/parse-url.ts';
import { durationText, settings as settingRows } from '../config/settings.ts';
import { count, duration, plural, roughly } from '../format.ts';
import { conclusionText } from '../ledger/conclusion.ts';
import type { Target } from '../model/target.ts';
import type { ToType } from '../model/to-type.ts';
import { visibleLine } from '../model/visible.ts';
import { describeOccurrence, type OccurrenceDescription } from '../schedule/describe-occurrences.ts';
import { occurrencesInARow } from '../schedule/occurrence-news.ts';
import { nextOccurrence, nextOccurrences, type Timing } from '../schedule/occurrences.ts';
import {
  type Definition,
  type HistoryEntry,
  type RunEnd,
  type Schedule,
  stopAtWithZone,
} from '../schedule/schedule.ts';
import { targetName } from './stop-text.ts';
import { columns, type TableFit } from './style.ts';

/** `At 03:00, Europe/Berlin`. */
export function whenText({ cron, tz }: Timing): string {
  const words = cronstrue.toString(cron, { use24HourTimeFormat: true, throwExceptionOnParseError: false });
  return visibleLine(`${/^An error/.test(words) ? cron : words}, ${tz}`);
}

/** How to write a text: how its reader types commands, and whether to omit the next step. */
type Telling = { toType: ToType; isQuiet?: boolean };

/** The result of `schedule add`. `before`: the schedule that had the name; `isTriable`: whether it can be tried from here. */
export function addedText(
  done: 'added' | 'same' | 'changed',
  schedule: Schedule,
  now: number,
  before: Schedule | null,
  { toType, isQuiet = false, isTriable = true }: Telling & { isTriable?: boolean },
): string {
  const { name, from, settings } = schedule;
  const next = nextOccurrences(schedule, now, 3).map((occurrence) => describeOccurrence(schedule.tz, occurrence).local);
  const what = settings.resource ?? `ids by ${visibleLine(settings.resourceColumn ?? '')}`;
  return [
    `Schedule ${name} ${{ added: 'added', same: 'exists already, with these settings', changed: 'changed' }[done]}: ${whenText(schedule)}; ${what} from ${from}, at most ${count(Number(settings.maxDeletes))} ids per run.`,
    `  Next  ${next.join(' · ')}`,
    ...(done === 'changed' && before !== null ? [`  Changed  ${differences(before, schedule).join(' · ')}`] : []),
    ...keptText(schedule, 'It'),
    ...(isQuiet || !isTriable ? [] : [`  Try it  ${toType('schedule run', name, '--dry-run')}`]),
    ...(schedule.state === 'paused'
      ? [`  It is paused.${isQuiet ? '' : ` Resume: ${toType('schedule resume', name)}`}`]
      : []),
  ].join('\n');
}

/** The ids that a schedule never deletes, how many of a list it takes, and what it carries over and retries. */
function keptText(schedule: Schedule, who: string): string[] {
  const { settings, protectedList, atMost, retryFailed, carriedOver } = schedule;
  const { protect, limit } = settings;
  const never = `never deletes the ${plural(protectedList?.ids ?? 0, 'ids')} of ${visibleLine(protect ?? '')}`;
  return [
    ...(protect === undefined ? [] : [`  ${who} ${never}`]),
    ...(limit === undefined ? [] : [`  ${who} takes the first ${plural(Number(limit), 'rows')} of a list`]),
    ...(atMost === 0
      ? []
      : [`  ${who} deletes at most ${plural(atMost, 'ids')} per occurrence and carries the others over to the next`]),
    ...(retryFailed ? [`  ${who} sends again the ids that the last occurrence left as failed or unknown`] : []),
    ...timesText(schedule, who),
    ...(carriedOver === null ? [] : [`  ${who} carries ${plural(carriedOver.ids, 'ids')} over to its next occurrence`]),
  ];
}

/** When the runs of a schedule start and pause, if not at once and never. */
function timesText({ tz, settings: { grace }, maxActiveMs, stopAt }: Schedule, who: string): string[] {
  const ends = [
    ...(stopAt === '' ? [] : [`at ${stopAtWithZone(stopAt, tz)}`]),
    ...(maxActiveMs === 0 ? [] : [`after ${duration(maxActiveMs)} of deleting`]),
  ];
  return [
    ...(grace === undefined ? [] : [`  ${who} sends nothing of a run for its first ${visibleLine(grace)}`]),
    ...(ends.length === 0 ? [] : [`  ${who} pauses each run ${ends.join(', or ')}`]),
  ];
}

/** The differences of two definitions, as flags: `--max-deletes 100 → 50`. */
export function differences(before: Definition, after: Definition): string[] {
  const [was, is] = [flagsOf(before), flagsOf(after)];
  const names = [...new Set([...Object.keys(was), ...Object.keys(is)])].filter((name) => was[name] !== is[name]);
  const shown = (name: string, value = 'none') =>
    name === 'heartbeat' && value !== 'none' ? listOrigins([value]) : value;
  return names.map((name) => visibleLine(`--${name} ${shown(name, was[name])} → ${shown(name, is[name])}`));
}

function flagsOf({ settings: kept, note, cron, tz, from, missed, ...others }: Definition) {
  const { maxDelayMs, maxGrowth, heartbeat, atMost, retryFailed, maxActiveMs, stopAt, definitions } = others;
  const own = { cron, tz, from, missed, 'max-delay': durationText(maxDelayMs) };
  const guards = {
    'max-growth': String(maxGrowth),
    'at-most': atMost === 0 ? undefined : String(atMost),
    'retry-failed': String(retryFailed),
    'max-duration': maxActiveMs === 0 ? undefined : durationText(maxActiveMs),
    'stop-at': stopAt || undefined,
    heartbeat: heartbeat || undefined,
    definitions: definitions || undefined,
    reason: note || undefined,
  };
  const flags = (Object.keys(kept) as (keyof typeof kept)[]).map((name) => [settingRows[name].flag, kept[name]]);
  return { ...own, ...guards, ...Object.fromEntries(flags) } as Record<string, string | undefined>;
}

/** The next runs, one per line. */
export function previewText(schedule: Schedule, occurrences: OccurrenceDescription[]): string {
  const lines = occurrences.map(({ local, utc, note }) => {
    return `  ${local}${schedule.tz === 'UTC' ? '' : ` · ${utc}`}${note && ` (${note})`}`;
  });
  const paused =
    schedule.state === 'paused' ? [`  It is paused: ${visibleLine(schedule.reason) || 'no reason given'}`] : [];
  return [`${schedule.name}: ${whenText(schedule)}`, ...lines, ...keptText(schedule, 'It'), ...paused].join('\n');
}

type Listed = { schedule: Schedule; history: HistoryEntry[] };

/** The schedules of a target as a table, followed by why some are paused. */
export function listText(
  all: readonly Listed[],
  target: Target,
  now: number,
  telling: Telling & { fit?: TableFit | undefined },
): string {
  const { toType, isQuiet = false } = telling;
  if (all.length === 0 && isQuiet) return `No schedules of ${targetName(target)}.`;
  if (all.length === 0)
    return `No schedules of ${targetName(target)}. Add one: ${toType('schedule add', 'NAME', '--cron', '0 3 * * *', '--from', 'SOURCE', '…')}`;
  const lines = all.map(({ schedule, history }) => [
    ...[schedule.name, schedule.state, whenText(schedule)],
    schedule.state === 'active' ? describeOccurrence(schedule.tz, nextOccurrence(schedule, now)).local : '-',
    history[0] === undefined ? '-' : lastText(history[0]),
  ]);
  const paused = all
    .filter(({ schedule }) => schedule.state === 'paused')
    .map(({ schedule }) => pausedText(schedule, now, telling));
  const failed = all.flatMap(({ schedule, history }) => failedText(schedule, history));
  const kept = all.flatMap(({ schedule }) => keptText(schedule, schedule.name));
  return [
    columns([['NAME', 'STATE', 'WHEN', 'NEXT', 'LAST'], ...lines], telling.fit),
    ...paused,
    ...failed,
    ...kept,
  ].join('\n');
}

/** A line about several failed occurrences in a row; a single one is in the table. */
function failedText({ name }: Schedule, history: readonly HistoryEntry[]): string[] {
  const failed = occurrencesInARow(history, 'failed');
  return failed > 1
    ? [`  ${name} has had no complete list in ${plural(failed, 'occurrences')} since the last successful one`]
    : [];
}

function pausedText(
  { name, reason, who, pausedBy, changedAt }: Schedule,
  now: number,
  { toType, isQuiet = false }: Telling,
): string {
  const by = pausedBy === '' ? who : `its guard "${pausedBy}"`;
  const why = visibleLine(reason) || 'no reason given';
  const expect = `\n    If its ids may be gone: ${toType('schedule add', name, '…', '--expect-absent', '--replace')}`;
  const resume = `\n    Resume: ${toType('schedule resume', name)}`;
  const resumeText = isQuiet ? '' : `${pausedBy === 'none_there' ? expect : ''}${resume}`;
  return `  ${name} was paused ${roughly(now - changedAt)} ago by ${by}: ${why}${resumeText}`;
}

function lastText({ outcome, occurrences, reason, run, ended, rows, retried, carriedOver }: HistoryEntry): string {
  const again = retried === 0 ? '' : `, ${count(retried)} retried`;
  const rest = carriedOver === 0 ? '' : `, ${count(carriedOver)} carried over to the next occurrence`;
  const detail = `${again}${rest}${reason === '' ? '' : `; ${visibleLine(reason)}`}`;
  if (outcome === 'started' && ended === null) return `run ${run}, ${plural(rows ?? 0, 'rows')}${detail}`;
  if (outcome === 'started' && ended !== null) {
    return `${endText(ended)} (${run})${detail}`;
  }
  const word = outcome === 'empty' ? 'nothing to do' : outcome;
  const what =
    occurrences > 1 ? `${word} ${outcome === 'empty' ? 'in ' : ''}${plural(occurrences, 'occurrences')}` : word;
  return reason === '' ? what : `${what}: ${visibleLine(reason)}`;
}

/** `completed: 12 deleted, 3 gone, 1 not` or `completed, but none of its 3 ids was there`. */
function endText({ state, conclusion, deleted, gone, left }: RunEnd): string {
  const fault = conclusionText(conclusion);
  if (fault !== '') return `${state}, but ${fault}`;
  const parts = [
    `${count(deleted)} deleted`,
    gone > 0 ? `${count(gone)} gone` : '',
    left > 0 ? `${count(left)} not` : '',
  ];
  return `${state}: ${parts.filter(Boolean).join(', ')}`;
}

/** The result of `schedule pause`, `resume` or `remove`. */
export function steeredText(
  action: 'pause' | 'resume' | 'remove',
  schedule: Schedule,
  now: number,
  { toType, isQuiet = false }: Telling,
): string {
  const { name } = schedule;
  const resumeText = isQuiet ? '' : `\n  Resume: ${toType('schedule resume', name)}`;
  if (action === 'pause' && schedule.state === 'paused') return `Schedule ${name} was paused already.${resumeText}`;
  if (action === 'resume' && schedule.state === 'active') return `Schedule ${name} was active already.`;
  if (action === 'pause')
    return `Paused schedule ${name}: it starts no more runs; a running one continues.${resumeText}`;
  if (action === 'remove') return `Removed schedule ${name}; its runs stay.`;
  const next = describeOccurrence(schedule.tz, nextOccurrence(schedule, now)).local;
  const waived = ['', 'too_many', 'halted', 'none_there'].includes(schedule.pausedBy)
    ? ''
    : '\n  The next list passes the guard that paused it; --max-deletes still applies.';
  return `Resumed schedule ${name}: next ${next}.${waived}`;
}
