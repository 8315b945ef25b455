import type { Resource } from '../ledger/outcome.ts';
import type { RunState } from '../ledger/run.ts';
import { leastMs, paceOf, type Rate, rateText } from '../limiter/rate.ts';
import type { LearnedStart } from '../limiter/read-target.ts';
import { type Stop, stopAdvice } from '../limiter/stop.ts';
import { plainLine, plainStyle, type Style } from './style.ts';
import { count, duration, rate as perSecond, plural, roughly } from './words.ts';

/** What a run would do, as far as it is known before its first request. */
export type Plan = {
  files: readonly string[];
  rows: number;
  ids: Record<Resource, number>;
  duplicates: number;
  rejected: Record<string, number>; // by code
  rejectsFile: string | null;
  protected: number;
  limited: number | null; // --limit, if the input had more rows
  baseUrl: string;
  account: string;
  tokenSource: string;
  firstUrl: string | null; // null when there is nothing to send
  rate: Rate | null;
  learned: LearnedStart | null; // null also where nobody looked
  treat: string; // what some answers mean in this run, '' for our own table
  expectAbsent: boolean;
  maxConcurrency: number;
  stop: Stop | null; // nothing will leave before it is lifted; null also where nobody looked
  existing: ExistingRun | null; // of the same list
};

/** An unfinished run of the same list, which would be resumed. */
type ExistingRun = { runId: string; state: RunState; reason: string; left: number; who: string };

/** The plan as it stands before the confirmation. */
export function planText(plan: Plan, style: Style = plainStyle): string {
  return [...inputLines(plan, style), ...targetLines(plan, style), ...existingLines(plan), ...stopLines(plan, style)]
    .map(([label, text]) => `  ${label.padEnd(9)} ${text}`)
    .join('\n');
}

/** `1,203 views`, `5 annotations and 1 view`. */
export function idsText(ids: Record<Resource, number>): string {
  const parts = (['annotations', 'views'] as const).filter((resource) => ids[resource] > 0);
  return parts.map((resource) => plural(ids[resource], resource)).join(' and ') || 'nothing';
}

type Line = [label: string, text: string];

function inputLines(plan: Plan, style: Style): Line[] {
  const rejected = Object.values(plan.rejected).reduce((sum, n) => sum + n, 0);
  const apart = [
    plan.duplicates > 0 ? plural(plan.duplicates, 'duplicates') : '',
    plan.protected > 0 ? `${count(plan.protected)} protected` : '',
    rejected > 0 ? `${count(rejected)} rejected` : '',
  ].filter(Boolean);
  const sums = [`${plural(plan.rows, 'rows')} → ${style.bold(idsText(plan.ids))} to delete`, ...apart].join(' · ');
  return [['Input', files(plan.files)], ['', sums], ...rejectLines(plan, rejected), ...limitLines(plan, style)];
}

function files(names: readonly string[]): string {
  const shown = names.slice(0, 3).map(plainLine).join(', ');
  return names.length > 3 ? `${shown} and ${plural(names.length - 3, 'other files')}` : shown;
}

function rejectLines({ rejected, rejectsFile }: Plan, sum: number): Line[] {
  if (sum === 0) return [];
  const byCode = Object.entries(rejected).sort(([, a], [, b]) => b - a);
  const codes = byCode.map(([code, n]) => `${code} ${count(n)}`).join(', ');
  return [['Rejected', `${codes}${rejectsFile ? ` · all in ${plainLine(rejectsFile)}` : ''}`]];
}

function limitLines({ limited }: Plan, style: Style): Line[] {
  if (limited === null) return [];
  return [
    ['Limit', style.yellow(`only the first ${plural(limited, 'rows')} ${limited === 1 ? 'is' : 'are'} in this run`)],
  ];
}

function targetLines(plan: Plan, style: Style): Line[] {
  const { host } = new URL(plan.baseUrl);
  const target = plan.baseUrl.replace(host, style.bold(host));
  const account = plan.account ? ` as account ${plainLine(plan.account)}` : '';
  return [
    ['Target', `${target}${account}, token from ${plainLine(plan.tokenSource)}`],
    ...(plan.firstUrl === null ? [] : [['First', `DELETE ${plan.firstUrl}`] as Line]),
    ...(plan.treat === '' ? [] : [['Treats', plan.treat.replaceAll(',', ', ')] as Line]),
    ...(plan.expectAbsent ? [['Expects', 'ids that are gone already'] as Line] : []),
    ['Pace', pace(plan)],
  ];
}

function pace({ rate, learned, maxConcurrency, ids, existing }: Plan): string {
  const text = paceText(rate, learned);
  if (rate === null) return text || `as fast as the API and ${plural(maxConcurrency, 'requests')} at once allow`;
  if (isSlower(learned, rate)) return text;
  const left = existing?.left ?? ids.annotations + ids.views;
  return `${text}: about ${duration(leastMs(rate, left))}, longer if the API is slower`;
}

const freshMs = 60_000;

/** Where the rate begins: `at most 200/s`, `starts at 412/s, learned 3 h ago`; the lower wins. '' where nothing bounds it yet. */
export function paceText(rate: Rate | null, learned: LearnedStart | null): string {
  const most = rate === null ? '' : `at most ${rateText(rate)}`;
  if (learned === null || !isSlower(learned, rate)) return most;
  const ago = learned.silentMs < freshMs ? 'as learned' : `learned ${roughly(learned.silentMs)} ago`;
  return [`starts at ${perSecond(learned.perSecond)}, ${ago}`, most].filter(Boolean).join('; ');
}

function isSlower(learned: LearnedStart | null, rate: Rate | null): boolean {
  return learned !== null && (rate === null || learned.perSecond < paceOf(rate));
}

function existingLines({ existing }: Plan): Line[] {
  if (existing === null) return [];
  const { runId, state, left, who, reason } = existing;
  const why = plainLine(`${who ? ` by ${who}` : ''}${reason ? `: ${reason}` : ''}`);
  return [['Resumes', `run ${runId} of the same list, ${count(left)} left (${state}${why})`]];
}

function stopLines({ stop }: Plan, style: Style): Line[] {
  if (stop === null) return [];
  return [['Waits', style.yellow(plainLine(stopAdvice(stop)))]];
}
