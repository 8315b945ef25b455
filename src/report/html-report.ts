import { count, duration, percent, plural, rate, utcTime } from '../format.ts';
import { type History, readHistory, separateWaits } from '../history/history.ts';
import { type AuditEntry, readAudit } from '../ledger/audit.ts';
import { describeBodies } from '../ledger/bodies.ts';
import { conclusionText, judgeRun } from '../ledger/conclusion.ts';
import { type Measures, readMeasures } from '../ledger/measures.ts';
import { type OutcomeRow, readOutcomes } from '../ledger/outcome-rows.ts';
import { countPending, type Run, sumActiveMs } from '../ledger/run.ts';
import { ruleLines } from '../ledger/run-rules.ts';
import { readStandings } from '../ledger/run-standings.ts';
import type { Standing } from '../ledger/standing.ts';
import { readProof } from '../ledger/verification.ts';
import { isSuccess, type Outcome, outcomes, outcomeText, sumOutcomes } from '../model/outcome.ts';
import { rehearsalMark, rehearsalPrefix, rehearsalText } from '../model/rehearsal.ts';
import type { RedisClient } from '../redis/client.ts';
import { cut, facts, html, type Markup, noMarkup, page, section, table } from './html.ts';
import { drawCharts } from './html-charts.ts';

/** The content of a run's page. */
export type PageFacts = {
  run: Run;
  standing: Standing | null; // why the run sends nothing: the first cause
  history: History;
  measures: Measures;
  audit: readonly AuditEntry[];
  failures: readonly SampledGroup[];
  proof: readonly string[]; // see `readProof`
};

/**
 * Writes the page of a run, below 1 MB. Reads its rows only if some need attention. Once all measures of a finalized run are recorded, its page
 * changes only with `readProof`.
 */
export async function htmlReport(redis: RedisClient, run: Run): Promise<string> {
  const samples = new FailureSamples();
  if (hasFailures(run)) for await (const rows of readOutcomes(redis, run)) for (const row of rows) samples.add(row);
  return renderRun(redis, run, samples);
}

/** The same for a caller that has already read the rows. */
export async function renderRun(redis: RedisClient, run: Run, samples: FailureSamples): Promise<string> {
  const [standings, history, measures, audit, proof] = await Promise.all([
    readStandings(redis, [run]),
    readHistory(redis, run),
    readMeasures(redis, run.id),
    readAudit(redis, run),
    readProof(redis, run),
  ]);
  return renderPage({
    run,
    standing: standings(run)[0] ?? null,
    history,
    measures,
    audit,
    failures: samples.list(),
    proof,
  });
}

/** Whether a run has failures. Most runs have none, so their ledger need not be read. */
function hasFailures({ counts }: Run): boolean {
  return sumOutcomes(counts, (outcome) => !isSuccess(outcome)) > 0;
}

type Sampled = Pick<OutcomeRow, 'file' | 'line' | 'id' | 'excerpt'>;

/** Rows with the same outcome for the same reason. */
type SampledGroup = { outcome: Outcome; code: string; count: number; samples: Sampled[] };

// With these bounds the page stays below 1 MB whatever the ids, answers and reasons are: an escaped character takes six bytes.
const samplesOfOne = 20;
const samplesMax = 200; // for all groups together; beyond it, each further group has one
const sampleLength = { file: 60, id: 100, excerpt: 80 };
const groupsMax = 50;
const textLength = 150;
const nameLength = 60;
const proofLength = 300;
const actionsMax = 100;
const eventsMax = 100;
const guardsMax = 20;
const filesShown = 20;

/** Counts rows that need attention by their reason, and keeps a few of each. The number of reasons bounds its memory. */
export class FailureSamples {
  readonly #groups = new Map<string, SampledGroup>();
  #kept = 0;

  add({ outcome, code, file, line, id, excerpt }: OutcomeRow): void {
    if (outcome === 'pending' || isSuccess(outcome)) return;
    const key = `${outcome} ${code}`;
    const group = this.#groups.get(key) ?? { outcome, code, count: 0, samples: [] };
    this.#groups.set(key, group);
    group.count += 1;
    if (group.samples.length >= (this.#kept < samplesMax ? samplesOfOne : 1)) return;
    const { file: ofFile, id: ofId, excerpt: ofExcerpt } = sampleLength;
    group.samples.push({ file: cut(file, ofFile), line, id: cut(id, ofId), excerpt: cut(excerpt, ofExcerpt) });
    this.#kept += 1;
  }

  /** The groups, largest first. */
  list(): SampledGroup[] {
    return [...this.#groups.values()].sort((a, b) => b.count - a.count);
  }
}

/** Builds the page. Pure. */
export function renderPage({ run, standing, history, measures, audit, failures, proof }: PageFacts): string {
  return page(`${rehearsalPrefix(run, ': ')}Run ${run.id}`, [
    rehearsalBanner(run),
    headline(run, standing),
    html`${proof.map((sentence) => html`<p>${cut(sentence, proofLength)}</p>`)}`,
    section('Outcomes', totals(run)),
    section('Pace', pace(run, measures)),
    section('Over time', ...drawCharts(history), eventTable(history)),
    section('Failures', ...failureTables(failures)),
    section('Guards', guards(run, audit)),
    section('Plan', plan(run)),
    section('Who did what', auditTable(audit)),
  ]);
}

/** The mark of a rehearsal, which stays in view and is on every printed page. */
function rehearsalBanner({ rehearsalOf }: Run): Markup {
  if (rehearsalOf === '') return noMarkup;
  return html`<p class="rehearsal"><b>${rehearsalMark}</b> of ${cut(rehearsalOf, textLength)}: ${rehearsalText(rehearsalOf)}.</p>\n`;
}

function headline(run: Run, standing: Standing | null): Markup {
  const { id, state, reason, counts, rows } = run;
  const conclusion = judgeRun(run);
  const isBad = state === 'halted' || hasFailures(run) || (conclusion !== null && conclusion !== 'well');
  const tone = isBad ? 'bad' : conclusion === 'well' && state === 'completed' ? 'good' : '';
  const fault = conclusionText(conclusion);
  const ended = state === 'completed' || reason === '' ? fault && `, but ${fault}` : `: ${reason}`;
  const why = cut(standing === null ? ended : heldText(state, standing), textLength);
  const open = countPending(run);
  const good = fault === '' ? `, ${count(sumOutcomes(counts, isSuccess))} of them without a problem` : '';
  return html`<h1>${rehearsalPrefix(run, ' · ')}Run ${id}</h1>
<p><b class="${tone}">${state}</b>${why}</p>
<p>${plural(rows, 'rows')}${good}${open > 0 ? `, ${count(open)} open` : ''}
· ${cut(run.baseUrl, textLength)}${run.account === '' ? '' : ` (${cut(run.account, textLength)})`}</p>
<p class="soft">${timesOf(run)}</p>
${describeBodies(run.bodies).map((sentence) => html`<p class="bad">${sentence}</p>`)}
`;
}

/** The reason why a run sends nothing, to follow the word for its state: ` by ana: release window`, `: the budget is used up, until …` */
function heldText(state: Run['state'], { text, until }: Standing): string {
  const words = text.startsWith(state) ? text.slice(state.length) : `: ${text}`;
  return until === null ? words : `${words}, until ${utcTime(until, 'second')}`;
}

function timesOf({ startedAt, endedAt }: Run): string {
  const started = startedAt > 0 ? utcTime(startedAt, 'second') : 'not started';
  return endedAt > 0 ? `${started} to ${utcTime(endedAt, 'second')}` : started;
}

function totals(run: Run): Markup {
  const found = outcomes.filter((outcome) => run.counts[outcome] > 0);
  const line = (name: string, n: number, means: string) => [name, count(n), percent(n, run.rows), means];
  const rows = found.map((outcome) => line(outcome, run.counts[outcome], outcomeText(outcome)));
  const open = countPending(run);
  const left = open > 0 ? [line('pending', open, 'no outcome yet')] : [];
  return table(['outcome', 'rows', 'share', 'meaning'], [...rows, ...left, line('all', run.rows, '')], [1, 2]);
}

function pace(run: Run, measures: Measures): Markup {
  const { requests, refused, refreshes, workMs, heldMs, allowed, limitedMs, latencyMs } = measures;
  const activeMs = sumActiveMs(run, run.activeUntil);
  const waitedMs = workMs > 0 ? (Math.min(heldMs, workMs) / workMs) * activeMs : 0;
  const ms = (n: number) => `${Number(n.toPrecision(2))} ms`;
  return facts([
    ['deleting time', duration(activeMs)],
    ['requests', count(requests)],
    ['attempts', count(run.attempts)],
    ['achieved', activeMs > 0 ? rate(((requests - refused) / activeMs) * 1_000) : ''],
    ['allowed', limitedMs > 0 ? rate((allowed / limitedMs) * 1_000) : ''],
    ['throttled', count(refused)],
    ['waited', duration(waitedMs)],
    ['latency', latencyMs ? `p50 ${ms(latencyMs.p50)}, p95 ${ms(latencyMs.p95)}, p99 ${ms(latencyMs.p99)}` : ''],
    ['tokens fetched', refreshes > 0 ? count(refreshes) : ''],
  ]);
}

function eventTable({ events }: History): Markup {
  const { waits, others } = separateWaits(events);
  const waited = waits.map(({ from, to, text }) => {
    const how = to === null ? 'waiting' : `waited ${duration(to - from)}`;
    return { at: from, text: text === '' ? how : `${how}: ${text}` };
  });
  const all = [...others, ...waited].sort((a, b) => a.at - b.at);
  const rows = all.slice(-eventsMax).map(({ at, text }) => [utcTime(at, 'second'), cut(text, textLength)]);
  const hidden = Math.max(0, all.length - eventsMax);
  return html`<p class="soft">Shaded: nothing was sent. Dashed: an event. If there are many waits, only the longest are kept.</p>
<h3>Events</h3>${earlier(hidden, 'events')}${table(['at', 'event'], rows)}`;
}

function failureTables(groups: readonly SampledGroup[]): Markup[] {
  if (groups.length === 0) return [html`<p class="good">None.</p>`];
  const hidden = groups.length - groupsMax;
  const more = hidden > 0 ? [html`<p>${plural(hidden, 'further reasons')}: the CSV report has all rows.</p>`] : [];
  return [...groups.slice(0, groupsMax).map(failureTable), ...more];
}

function failureTable({ outcome, code, count: n, samples }: SampledGroup): Markup {
  const rows = samples.map(({ file, line, id, excerpt }) => [html`<code>${id}</code>`, `${file}:${line}`, excerpt]);
  const others = n - samples.length;
  return html`<h3>${outcome} · ${code} · ${count(n)}</h3>
${rows.length > 0 ? table(['id', 'row', 'answer'], rows) : noMarkup}${others > 0 ? html`<p class="soft">and ${count(others)} more</p>` : noMarkup}
`;
}

/** The guards that could have stopped the run, and the guards that did. */
function guards(run: Run, audit: readonly AuditEntry[]): Markup {
  const acted = audit.filter(({ by }) => by === 'guard').slice(-guardsMax);
  const settings = facts([
    ['halted by', run.halt],
    ['nothing sent before', run.startsAt > 0 ? utcTime(run.startsAt, 'second') : ''],
    ...ruleLines(run, 'guards').map(([label, text]) => [label, cut(text, textLength)] as [string, string]),
    ['plan', run.plan],
    ['changed since', cut(run.planChanged, textLength)],
    ['in doubt', run.doubtSince > 0 ? cut(run.doubt, textLength) : ''],
  ]);
  const what = acted.map(({ at, action, reason }) => [utcTime(at, 'second'), action, cut(reason, textLength)]);
  return html`${settings}${acted.length === 0 ? html`<p>No guard stopped it.</p>` : table(['at', 'what', 'why'], what)}`;
}

function plan(run: Run): Markup {
  const hidden = run.files.length - filesShown;
  const files = run.files.slice(0, filesShown).map((file) => cut(file, textLength));
  return facts([
    ['list', [...files, ...(hidden > 0 ? [plural(hidden, 'further files')] : [])].join(', ')],
    ['ids', count(run.ids)],
    ['sha256', run.sha256],
    ['target', cut(run.baseUrl, textLength)],
    ['account', cut(run.account, textLength)],
    ...ruleLines(run, 'plan').map(([label, text]) => [label, cut(text, textLength)] as [string, string]),
    ['deleted by', run.detached ? 'workers' : 'its command'],
    ['retry of', run.retryOf],
    ['retried by', run.retriedBy.slice(0, filesShown).join(', ')],
    ['submitted', utcTime(run.createdAt, 'second')],
    ['by', cut(run.createdBy, textLength)],
    ['because', cut(run.note, textLength)],
    ['command', run.command === '' ? '' : html`<code>${cut(run.command, 1_000)}</code>`],
  ]);
}

function auditTable(audit: readonly AuditEntry[]): Markup {
  const rows = audit.slice(-actionsMax).map(({ at, action, by, who, reason, ...more }) => {
    const further = Object.entries(more).map(([name, value]) => `${name} ${value ?? 'none'}`);
    return [
      utcTime(at, 'second'),
      cut([action, ...further].join(' '), textLength),
      cut(who || by, nameLength),
      cut(reason, textLength),
    ];
  });
  const hidden = Math.max(0, audit.length - actionsMax);
  return html`${earlier(hidden, 'actions')}${table(['at', 'what', 'who', 'why'], rows)}`;
}

function earlier(hidden: number, what: string): Markup {
  return hidden > 0 ? html`<p class="soft">${plural(hidden, `earlier ${what}`)}</p>` : noMarkup;
}
