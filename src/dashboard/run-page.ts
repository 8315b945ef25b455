import { address, get } from './api.ts';
import { Charts } from './charts.ts';
import { Failures } from './failures.ts';
import { duration, endRange, estimateRange, leftText, percent, plural, rate, withoutFlags } from './format.ts';
import { follow } from './live.ts';
import { html, nothing } from './markup.ts';
import type { Page, Surroundings } from './page.ts';
import {
  alarm,
  facts,
  host,
  idText,
  outcomeList,
  progressBar,
  progressText,
  stateBadge,
  table,
  time,
  why,
  word,
} from './parts.ts';
import { actionButtons } from './run-actions.ts';
import { renderStandstill } from './standing.ts';
import type { AuditEntry, Run, RunEvent, RunHistory } from './types.ts';
import { countFailures, countIds, countSettled, isFinalized, stateReason } from './words.ts';

/** One run: its progress, its activity, its history, its failures and its audit trail. */
export function openRun(id: string, { show, go, connection, asOf, say }: Surroundings): Page {
  const path = `/runs/${encodeURIComponent(id)}`;
  let run: Run | null = null;
  let history: RunHistory = { points: [], events: [], waits: [] };
  let isMissing = false;
  const charts = new Charts(show);
  const failures = new Failures(id, show);
  const close = follow({
    path: `${path}/events`,
    event: 'run',
    read: async () => {
      const [run, history] = await Promise.all([get<Run>(path), get<RunHistory>(`${path}/history`)]);
      return { run, history };
    },
    onData: (found) => {
      if (run && run.state !== found.run.state) say(`The run is ${found.run.state}. ${stateReason(found.run)}`);
      ({ run, history } = found);
      charts.history = history;
      failures.expect(countFailures(run), isFinalized(run));
      show();
    },
    onState: connection,
    onMissing: () => {
      isMissing = true;
      show();
    },
  });
  const titleNow = () => (run ? `${percent(countSettled(run), countIds(run))} ${run.state} · ${id}` : id);
  return {
    title: () => (isMissing ? 'No such run' : titleNow()),
    view: () =>
      isMissing
        ? missing(id)
        : run
          ? html`${headline(run, go, asOf())}
            <section aria-labelledby="over-time"><h2 id="over-time">Over time</h2>${charts.view()}${eventList(history.events)}</section>
            ${failures.view(run)}${auditSection(run.audit)}${planSection(run)}`
          : html`<h1>Run ${id}</h1><p>Loading …</p>`,
    drawn: () => charts.draw(),
    close,
  };
}

function missing(id: string) {
  return html`<h1>No such run</h1>
    <p>No run is called <b>${id}</b>. A run that has ended is kept for a while. After that, only the reports that someone saved are left.</p>
    <p><a href="/">See all runs</a></p>`;
}

function headline(run: Run, go: (path: string) => void, asOf: string) {
  return html`<h1><span class="soft">Run</span> ${run.run} ${stateBadge(run)}</h1>
    <p class="target">${host(run.target)}${run.account ? html` <span class="soft">account ${run.account}</span>` : nothing}</p>
    <section class="card" aria-label="Progress">
      <p class="far">${progressText(run)}</p>
      ${progressBar(run)}${outcomeList(run)}
      <p class="now">${asOf}${run.standing ? renderStandstill(run.standing) : withoutFlags(run.sentence) || why(run)}${failureLink(run)}</p>
      <p class="pace">${asOf === '' ? paceOf(run) : nothing}</p>
    </section>
    ${haltSection(run)}${run.warnings.map((words) => alarm(withoutFlags(words)))}${alarm(failedAction(run.audit))}
    ${actionButtons(run, go)}`;
}

/** A few ids that show why the run halted. */
function haltSection({ run, examples, behind_halt: behind }: Run) {
  if (examples.length === 0) return nothing;
  const rows = examples.map(({ id, outcome, code, excerpt }) => [idText(id), word(outcome), word(code), excerpt]);
  const all = address(`/runs/${run}/report?${new URLSearchParams({ format: 'csv', only: behind ?? '' })}`);
  return html`<section aria-labelledby="halt"><h2 id="halt">Why it halted</h2>
    ${table('Why it halted', ['Id', 'Outcome', 'Code', 'Answer'], rows, [], 'flow')}
    ${behind ? html`<p class="soft"><a href=${all} download>Download all of them</a></p>` : nothing}</section>`;
}

/** A sentence about the last action, if it was not carried out after its dialog had closed; otherwise ''. */
function failedAction(audit: AuditEntry[]) {
  const last = audit.at(-1);
  return last?.action === 'failed'
    ? `${last.who} asked to ${last.failedAction} the run, and it was not done: ${last.error}`
    : '';
}

/** A link to the rows without success, once the run has ended. */
function failureLink(run: Run) {
  const n = countFailures(run);
  return isFinalized(run) && n > 0 ? html` <a href="#failures">${plural(n, 'rows')} without success</a>.` : nothing;
}

function paceOf(run: Run) {
  const { per_second: perSecond, seconds_left: left, seconds, settings } = run;
  const estimate = left === null ? null : estimateRange(left);
  const isRunning = run.state === 'running';
  return [
    isRunning && perSecond !== null ? rate(perSecond) : '',
    isRunning && estimate ? `${leftText(estimate)} left, ends ${endRange(estimate, Date.now())}` : '',
    `deleting time ${duration(seconds)}`,
    typeof settings?.rate === 'string' ? `at most ${settings.rate}` : '',
  ]
    .filter(Boolean)
    .join(' · ');
}

function eventList(events: RunEvent[]) {
  if (events.length === 0) return nothing;
  const lines = events.map(({ at, text }, i) => html`<li value=${i + 1}>${time(at)} ${text}</li>`).reverse();
  return html`<h3>Events <span class="soft">newest first; each is a line with its number in the charts</span></h3><ol class="events" reversed tabindex="0" aria-label="Events">${lines}</ol>`;
}

function auditSection(audit: AuditEntry[]) {
  const rows = [...audit].reverse().map(({ at, action, by, who, reason, ...more }) => {
    const further = Object.entries(more).map(
      ([name, value]) => `${name === action ? '' : `${name} `}${value ?? 'none'}`,
    );
    return [time(at), further.length > 0 ? `${action}: ${further.join(', ')}` : action, who || by, reason];
  });
  return html`<section aria-labelledby="audit"><h2 id="audit">Who did what</h2>${table('Who did what', ['At', 'What', 'Who', 'Why'], rows, [], 'flow')}</section>`;
}

function planSection(run: Run) {
  const link = (id: string) => html`<a href="/runs/${id}">${id}</a> `;
  const settings = Object.entries(run.settings ?? {}).filter(
    ([, value]) => value !== null && value !== '' && value !== false,
  );
  return html`<section aria-labelledby="plan"><h2 id="plan">Plan</h2>${facts([
    ['list', Array.isArray(run.files) ? run.files.join(', ') : ''],
    ['target', run.target],
    ...settings.map(([name, value]) => [name.replaceAll('_', ' '), String(value)] as const),
    ['deleted by', run.detached ? 'workers' : 'its command'],
    ['retry of', run.retry_of ? link(run.retry_of) : ''],
    ['retried by', run.retried_by.length > 0 ? html`${run.retried_by.map(link)}` : ''],
    ['plan', run.plan],
    ['changed since', run.plan_changed],
    ['in doubt', run.doubt],
    ['nothing sent before', run.starts_at ? time(run.starts_at) : ''],
    ['submitted', html`${time(run.created_at)} by ${run.created_by}`],
    ['because', run.note],
    ['ended', run.ended_at ? time(run.ended_at) : ''],
    [
      'report',
      html`<a href=${address(`/runs/${run.run}/report?format=csv`)} download>CSV</a>,
      <a href=${address(`/runs/${run.run}/report?format=html`)} download>page</a>`,
    ],
    ['command', run.command ? html`<code>${run.command}</code>` : ''],
  ])}</section>`;
}
