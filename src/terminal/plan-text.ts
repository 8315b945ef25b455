import { count, duration, rate as perSecond, plural, roughly, utcTime } from '../format.ts';
import { noShapes, type ShapeProfile, shapeText } from '../input/id-shapes.ts';
import type { MinGrace } from '../ledger/min-grace.ts';
import type { RunState } from '../ledger/run.ts';
import type { RuleName, RunRules } from '../ledger/run-rules.ts';
import { findStandings, type Reading, standingAdvice, standingText } from '../ledger/standing.ts';
import type { LearnedStart, TargetLimit } from '../limiter/read-target.ts';
import type { Forecast, Work } from '../model/forecast.ts';
import { type OutcomeCounts, outcomes, type ReadOutcome } from '../model/outcome.ts';
import { paceOf, type Rate, rateText } from '../model/rate.ts';
import { definitionOf, type IdCounts, type Resource, resources, sumIds, usedResources } from '../model/resource.ts';
import { quoteForShell } from '../model/shell-word.ts';
import { always } from '../model/time-window.ts';
import { type ToType, unbroken } from '../model/to-type.ts';
import { visible, visibleLine } from '../model/visible.ts';
import { distanceText } from '../redis/distance.ts';
import { forecastText } from './forecast-text.ts';
import { lowRateAdvice, refusedText } from './pace.ts';
import { hanging } from './render-markdown.ts';
import { clip, plainStyle, type Style } from './style.ts';
import { limitText, minGraceText } from './target-events.ts';

/** What a run would do, as far as it is known before its first request. */
export type Plan = RunRules & {
  kept: readonly RuleName[]; // rules of the run to resume that only an earlier command gave
  files: readonly string[];
  retries: RetriedRun | null; // the run whose ids are sent again
  rows: number;
  ids: IdCounts;
  samples: readonly string[]; // the first ids to be sent
  shapes: ShapeProfile; // what these ids look like
  column: string | null; // the column of the ids; null if there are no columns
  rejected: Record<string, number>; // number of rejected rows, by code
  rejectsFile: string | null;
  settled: Record<ReadOutcome, number>; // number of rows that are not sent, by outcome
  protectedRead: number | null; // ids in the protect file; null without one
  limited: number | null; // --limit, if the input had more rows
  baseUrl: string;
  account: string;
  tokenSource: string | null; // source of the token; null: there is none yet
  firstUrl: string | null; // null if there is nothing to send
  lastId: string | null; // the last id to be sent, if the list is a single file; otherwise null
  endsWithoutNewline: boolean; // whether the line of that id has no newline, so that the id may be cut off
  rateBefore: Rate | null; // rate of the run to resume; null if it had none
  learned: LearnedStart | null; // null also if Redis was not asked
  limit: TargetLimit | null; // of the target; null also if Redis was not asked
  redisMs: number | null; // the round trip to Redis; null if it was not asked
  minGrace: MinGrace | null; // the minimum of its target, for a new run
  work: Work;
  forecast: Forecast; // forecast for that work
  canary: readonly number[]; // after this many ids the run continues only if all went well
  maxConcurrency: number;
  proof: readonly string[]; // what is known about the answers of the target; see `describeSemantics`
  seen: Reading | null; // what the run would see now, from which `findStandings` derives what would hold it back; null if Redis was not asked
  existing: (ExistingRun & { isJoined: boolean }) | null; // the run of the same list to resume, or to join while its command runs
  previous: FinishedRun | null; // the ended run of the same list
  overlapping: readonly (ExistingRun & { files: readonly string[]; protectedRead: number | null })[]; // of other lists that share a file
};

/** A run, the number of its ids that are sent again, by outcome, and the other runs that retried ids of it. */
type RetriedRun = { runId: string; chosen: OutcomeCounts; before: readonly string[] };

/** An unfinished run. */
type ExistingRun = { runId: string; state: RunState; reason: string; left: number; who: string };

/** A run that has ended. */
type FinishedRun = { runId: string; state: RunState; endedAt: number; counts: OutcomeCounts };

/** A plan, and how its reader types commands. */
export type ShownPlan = Plan & { toType: ToType };

/** The plan as lines of labels and values, at most this wide if possible; shown before the confirmation. Pure. */
export function planText(plan: ShownPlan, style: Style = plainStyle, width = Number.POSITIVE_INFINITY): string {
  const parts = [inputLines, targetLines, existingLines, previousLines, overlapLines, heldLines];
  return unbroken(plan.toType, (toType) =>
    parts
      .flatMap((linesOf) => linesOf({ ...plan, toType }, style))
      .map(([label, text]) => hanging(text, `  ${label.padEnd(9)} `, width))
      .join('\n'),
  );
}

/** `1,203 views`, `5 annotations and 1 view`. */
export function idsText(ids: IdCounts): string {
  return inWords.format(usedResources(ids).map((resource) => plural(ids[resource]!, resource))) || 'nothing';
}

/** What a new run would delete, in a question: `5 views on api.example.com, alongside run r2`. */
export function deletedText({ ids, baseUrl, overlapping }: Plan): string {
  const beside = overlapping.map(({ runId }) => `, alongside run ${runId}`).join('');
  return `${idsText(ids)} on ${new URL(baseUrl).host}${beside}`;
}

const inWords = new Intl.ListFormat('en-GB'); // `a, b and c`

type Line = [label: string, text: string];

function inputLines(plan: Plan, style: Style): Line[] {
  const excluded = (Object.keys(excludedText) as ReadOutcome[])
    .filter((outcome) => plan.settled[outcome] > 0)
    .map((outcome) => excludedText[outcome](plan.settled[outcome]));
  const sums = [`${plural(plan.rows, 'rows')} → ${style.bold(idsText(plan.ids))} to delete`, ...excluded].join(' · ');
  return [
    ...sourceLines(plan, style),
    ['', sums],
    ...protectLines(plan, style),
    ...rejectLines(plan),
    ...limitLines(plan, style),
  ];
}

function sourceLines({ retries, files: names }: Plan, style: Style): Line[] {
  if (retries === null) return [['Input', filesText(names)]];
  const { runId, chosen, before } = retries;
  const parts = outcomes.filter((outcome) => chosen[outcome] > 0);
  const sums = parts.map((outcome) => `${count(chosen[outcome])} ${outcome}`).join(', ');
  const line: Line = ['Retries', `${sums} from run ${runId} of ${filesText(names)}`];
  if (before.length === 0) return [line];
  const words = `some may be settled: ${before.at(-1)} retried ids of that run before`;
  return [line, ['', style.yellow(words)]];
}

const excludedText: Record<ReadOutcome, (rows: number) => string> = {
  duplicate: (rows) => plural(rows, 'duplicates'),
  protected: (rows) => `${count(rows)} protected`,
  rejected: (rows) => `${count(rows)} rejected`,
};

function protectLines({ protectedRead, settled: { protected: matched } }: Plan, style: Style): Line[] {
  if (protectedRead === null) return [];
  const read = `${plural(protectedRead, 'ids')} read`;
  if (matched > 0) return [['Protected', `${read}, ${plural(matched, 'rows')} ${matched === 1 ? 'matches' : 'match'}`]];
  const doubt =
    'none of them occurs in this list: check that it is the right file, and that its ids have the same format';
  return [['Protected', style.yellow(`${read}, ${doubt}`)]];
}

/** The names of the first files. */
export function filesText(names: readonly string[]): string {
  const shown = names.slice(0, 3).map(visible).join(', ');
  return names.length > 3 ? `${shown} and ${plural(names.length - 3, 'other files')}` : shown;
}

function rejectLines({ settled, rejected, rejectsFile }: Plan): Line[] {
  if (settled.rejected === 0) return [];
  const byCode = Object.entries(rejected).sort(([, a], [, b]) => b - a);
  const codes = byCode.map(([code, n]) => `${code} ${count(n)}`).join(', ');
  return [['Rejected', `${codes}${rejectsFile ? ` · all in ${visible(rejectsFile)}` : ''}`]];
}

function limitLines({ limited }: Plan, style: Style): Line[] {
  if (limited === null) return [];
  const words = `only the first ${plural(limited, 'rows')} ${limited === 1 ? 'is' : 'are'} in this run`;
  return [['Limit', style.yellow(words)]];
}

function targetLines(plan: ShownPlan, style: Style): Line[] {
  const { host } = new URL(plan.baseUrl);
  const target = plan.baseUrl.replace(host, style.bold(host));
  const account = plan.account ? ` as account ${visibleLine(plan.account)}` : '';
  return [
    ['Target', `${target}${account}, ${tokenText(plan)}`],
    ...pathLines(plan, style),
    ...(plan.samples.length === 0 ? [] : [['Ids', samples(plan)] as Line]),
    ...shapeLines(plan, style),
    ...(plan.firstUrl === null ? [] : [['First', `DELETE ${plan.firstUrl}`] as Line]),
    ...lastLines(plan, style),
    ...plan.proof.map((sentence): Line => ['Answers', style.yellow(sentence)]),
    ...Object.values(linesOfRules).flatMap((linesOf) => linesOf(plan)),
    ...rateLines(plan, style),
    ...lowRateLines(plan),
    ...targetLimitLines(plan),
    ...forecastLines(plan),
    ...distanceLines(plan, style),
  ];
}

/** The shapes of the ids, if they have several: the line for whoever looks for what is no id. */
function shapeLines({ shapes = noShapes, files }: Plan, style: Style): Line[] {
  const texts = shapeText(shapes, files.length > 1);
  if (texts.length < 2) return [];
  const [line, pattern] = [texts.join(' · '), shapes.pattern];
  if (shapes.odd === 0) return [['Shapes', line]];
  const without =
    pattern === null
      ? []
      : [['', `leave out what looks unlike the others: --id-pattern ${quoteForShell(pattern)}`] as Line];
  return [['Shapes', style.yellow(line)], ...without];
}

function distanceLines({ redisMs }: Plan, style: Style): Line[] {
  const words = distanceText(redisMs ?? 0);
  return words === '' ? [] : [['Redis', style.yellow(words.replace(/^Redis /, ''))]];
}

function lastLines({ lastId, endsWithoutNewline }: Plan, style: Style): Line[] {
  if (lastId === null) return [];
  const id = clip(visible(lastId), maxSampleLength);
  if (!endsWithoutNewline) return [['Last id', id]];
  const words = 'the last line has no newline: if the file was cut off, this is not the whole id';
  return [['Last id', style.yellow(`${id}; ${words}`)]];
}

/** The note after a rule that this command does not give. */
function origin({ kept = [] }: Plan, name: RuleName): string {
  return kept.includes(name) ? ' (from the first command)' : '';
}

const noLines = () => [];

/** The lines about each rule, in this order. */
const linesOfRules: Record<RuleName, (plan: Plan) => Line[]> = {
  canaryOf: canaryLines,
  maxDeletes: maxDeletesLines,
  maxFailures: maxFailuresLines,
  onStatus: onStatusLines,
  expectAbsent: expectAbsentLines,
  expect: expectLines,
  graceMs: startLines,
  startAt: noLines, // the line of `graceMs` has both
  window: windowLines,
  stopAt: pauseLines,
  maxActiveMs: noLines, // the line of `stopAt` has both
  rate: (plan) => [['Pace', `${pace(plan)}${origin(plan, 'rate')}`]],
  keepMs: noLines,
  labels: ({ labels }) => (labels === '' ? [] : [['Labels', labels.replaceAll(',', ', ')]]),
};

function canaryLines(plan: Plan): Line[] {
  const { canary, maxFailures, ids } = plan;
  if (canary.length === 0) return [];
  const rungs = canary.map((ids) => count(ids)).join(', ');
  const goesOn =
    maxFailures === '' ? 'none of them failed' : `no more than ${shareOf(maxFailures, sumIds(ids))} of them failed`;
  const unit = canary.at(-1) === 1 ? 'id' : 'ids';
  return [['Canary', `after ${rungs} ${unit} it continues only if ${goesOn}${origin(plan, 'canaryOf')}`]];
}

/** A number of failures as a share of all ids. */
function shareOf(maxFailures: string, ids: number): string {
  if (maxFailures.endsWith('%')) return maxFailures;
  return `${Number(((100 * Number(maxFailures)) / Math.max(1, ids)).toPrecision(2))} %`;
}

function maxDeletesLines(plan: Plan): Line[] {
  const { maxDeletes, ids } = plan;
  if (maxDeletes === null) return [];
  if (maxDeletes >= sumIds(ids) && !plan.kept?.includes('maxDeletes')) return [];
  const part = 'ids are sent, the first of the list, and the run halts; a higher --max-deletes continues it';
  return [['At most', `${count(maxDeletes)} ${part}${origin(plan, 'maxDeletes')}`]];
}

function maxFailuresLines(plan: Plan): Line[] {
  const { maxFailures } = plan;
  if (maxFailures === '') return [];
  return [['Halts', `when more than ${maxFailures} of the ids failed or are unknown${origin(plan, 'maxFailures')}`]];
}

function onStatusLines(plan: Plan): Line[] {
  const { onStatus } = plan;
  return onStatus === '' ? [] : [['On status', `${onStatus.replaceAll(',', ', ')}${origin(plan, 'onStatus')}`]];
}

function expectAbsentLines(plan: Plan): Line[] {
  return plan.expectAbsent ? [['Expects', `ids that are gone already${origin(plan, 'expectAbsent')}`]] : [];
}

function expectLines(plan: Plan): Line[] {
  const { expect } = plan;
  return expect === '' ? [] : [['Expects', `refusals with ${expect.replaceAll(',', ', ')}${origin(plan, 'expect')}`]];
}

function windowLines(plan: Plan): Line[] {
  const { window } = plan;
  return window === '' || window === always ? [] : [['Window', `sends only ${window}${origin(plan, 'window')}`]];
}

function pauseLines(plan: Plan): Line[] {
  const { stopAt, maxActiveMs } = plan;
  const ends = [
    ...(stopAt === 0 ? [] : [`at ${utcTime(stopAt, 'minute')}${origin(plan, 'stopAt')}`]),
    ...(maxActiveMs === 0 ? [] : [`after ${duration(maxActiveMs)} of deleting${origin(plan, 'maxActiveMs')}`]),
  ];
  return ends.length === 0 ? [] : [['Pauses', `${ends.join(', or ')}; resume continues it`]];
}

/** When the first request is sent, if not at once. The time of a new run counts from the moment when Redis has it. */
function startLines(plan: Plan): Line[] {
  const { graceMs, minGrace, existing, work, forecast } = plan;
  if (work.startsAt <= forecast.at) return [];
  const longest = Math.max(graceMs, minGrace?.ms ?? 0);
  const isGrace = existing === null && work.startsAt - forecast.at <= longest;
  const when = isGrace ? `${duration(longest)} after it is accepted` : `at ${utcTime(work.startsAt, 'minute')}`;
  const isMinimum = isGrace && longest > graceMs;
  const why = isMinimum ? `, the minimum of this target` : origin(plan, 'startAt') || origin(plan, 'graceMs');
  const lines: Line[] = [['Starts', `${when}${why}; it can be cancelled until then`]];
  return isMinimum ? [...lines, ['', minGraceText(minGrace!)]] : lines;
}

/**
 * Warns of a base URL that ends in a version, or continues with a resource after it, if the path of a resource begins with a version: then it is most
 * often a mistake.
 */
function pathLines({ baseUrl, ids }: Plan, style: Style): Line[] {
  const end = appendedPath().exec(new URL(baseUrl).pathname)?.[0];
  const version = usedResources(ids)
    .map(versionOf)
    .find((text) => text !== null);
  if (end === undefined || version == null) return [];
  const without = baseUrl.slice(0, -end.length);
  const words = `the address ends in ${end}, and ${version}/… is appended to it; use --base-url ${quoteForShell(without)} unless the API is really there`;
  return [['Warning', style.yellow(words)]];
}

/** The version with which the path of a resource begins, or null: `/v2`. A plan can have resources that only another machine defines. */
function versionOf(resource: Resource): string | null {
  if (!resources.includes(resource)) return null;
  return /^\/v\d+(?=\/)/i.exec(definitionOf(resource).path)?.[0] ?? null;
}

function appendedPath(): RegExp {
  return new RegExp(`/v\\d+(?:/(?:${resources.join('|')})(?:/.*)?)?$`, 'i');
}

function samples({ samples, column }: Plan): string {
  const ids = samples.map((id) => clip(visible(id), maxSampleLength)).join(', ');
  return column === null ? ids : `${ids} (column ${visible(column)})`;
}

const maxSampleLength = 40;

function tokenText({ tokenSource }: Plan): string {
  return tokenSource === null ? 'no token yet (EXPUNGE_TOKEN is not set)' : `token from ${visibleLine(tokenSource)}`;
}

function pace({ rate, learned, maxConcurrency }: Plan): string {
  return paceText(rate, learned) || `as fast as the API and ${plural(maxConcurrency, 'requests')} at once allow`;
}

/** The limit that an operator has set over all runs of the target. */
function targetLimitLines({ limit }: Plan): Line[] {
  return limit === null ? [] : [['Limits', limitText(limit, Date.now())]];
}

function forecastLines({ work, forecast }: Plan): Line[] {
  return work.requests === 0 ? [] : [['Takes', forecastText(forecast)]];
}

/** Warns of a changed rate: an operator may have lowered the rate since, for a reason that still applies. */
function rateLines({ rate, rateBefore }: Plan, style: Style): Line[] {
  if (rate === null || rateBefore === null || rateText(rate) === rateText(rateBefore)) return [];
  return [['', style.yellow(`until now at most ${rateText(rateBefore)}; omit --rate to keep that`)]];
}

/** The command that forgets a low rate, if the run begins at it. */
function lowRateLines({ rate, learned, baseUrl, account, toType }: ShownPlan): Line[] {
  const advice = isSlower(learned, rate) ? lowRateAdvice(learned, { baseUrl, account }, toType) : '';
  return advice === '' ? [] : [['', advice]];
}

const freshMs = 60_000;

/**
 * The starting rate: `at most 200/s`, `starts at 412/s, learned 3 h ago`, `starts at 200/s, the limit of the target`, `not refused up to 50/s`; the lower one applies.
 * '' if nothing bounds it yet.
 */
export function paceText(rate: Rate | null, learned: LearnedStart | null): string {
  const most = rate === null ? '' : `at most ${rateText(rate)}`;
  if (learned === null || !isSlower(learned, rate)) return most;
  return [startText(learned), most].filter(Boolean).join('; ');
}

function startText({ perSecond: rate, silentMs, isCapped, wasRefused, lowAfter }: LearnedStart): string {
  const ago = silentMs < freshMs ? null : `${roughly(silentMs)} ago`;
  if (isCapped) return `starts at ${perSecond(rate)}, the limit of the target`;
  const after = lowAfter === null ? '' : `: ${refusedText(lowAfter)}`;
  if (!wasRefused) return `not refused up to ${perSecond(rate)}${ago === null ? '' : `, ${ago}`}`;
  return `starts at ${perSecond(rate)}, ${ago === null ? 'as learned' : `learned ${ago}`}${after}`;
}

function isSlower(learned: LearnedStart | null, rate: Rate | null): boolean {
  return learned !== null && (rate === null || learned.perSecond < paceOf(rate));
}

function existingLines({ existing }: Plan): Line[] {
  if (existing === null) return [];
  const joined = existing.isJoined ? '; another command is deleting it; this one joins' : '';
  return [
    [
      'Resumes',
      `run ${existing.runId} of the same list, ${count(existing.left)} left (${stateText(existing)}${joined})`,
    ],
  ];
}

function stateText({ state, who, reason }: ExistingRun): string {
  if (state === 'running') return state;
  return visibleLine(`${state}${who ? ` by ${who}` : ''}${reason ? `: ${reason}` : ''}`);
}

function previousLines({ previous }: Plan): Line[] {
  if (previous === null) return [];
  const sums = outcomes.filter((outcome) => previous.counts[outcome] > 0);
  const text = sums.map((outcome) => `${count(previous.counts[outcome])} ${outcome}`).join(', ');
  const when = utcTime(previous.endedAt, 'minute');
  return [['Previous', `run ${previous.runId} of the same list ${previous.state} on ${when}: ${text}`]];
}

/** Warns of unfinished runs of other versions of the list: an edited list is another list, so both would be deleted, perhaps by mistake. */
function overlapLines(plan: ShownPlan, style: Style): Line[] {
  return plan.overlapping.slice(0, shownOverlaps).map((run) => {
    const words = `run ${run.runId} of ${filesText(run.files)} has ${plural(run.left, 'ids')} left (${stateText(run)}); the lists differ, so both would run`;
    return ['Overlaps', style.yellow(words + protectionWarning(plan, run))];
  });
}

/** Warns of different protection: repeating a command with or without --protect makes a second run, and each protects only its own ids. */
function protectionWarning(plan: ShownPlan, { runId, protectedRead }: Plan['overlapping'][number]): string {
  if (plan.settled.protected > 0 && protectedRead === null)
    return `, and that run has no --protect: it deletes ids protected here. Cancel it first: ${plan.toType('cancel', runId)}`;
  if (plan.protectedRead === null && protectedRead !== null)
    return `, and that one protects ${plural(protectedRead, 'ids')}, but this one protects none: add --protect`;
  return '';
}

const shownOverlaps = 3;

function heldLines({ seen, toType }: ShownPlan, style: Style): Line[] {
  if (seen === null) return [];
  return findStandings(seen).map((standing) => {
    const words = [`${standingText(standing, seen.now)}.`, standingAdvice(standing, toType)];
    return ['Waits', style.yellow(visibleLine(words.filter(Boolean).join(' ')))];
  });
}
