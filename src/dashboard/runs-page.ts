import { describeError, get } from './api.ts';
import { count, endRange, estimateRange, leftText, plural, rate } from './format.ts';
import { follow } from './live.ts';
import { html, nothing } from './markup.ts';
import type { Page, Surroundings } from './page.ts';
import { alarm, host, outcomeList, progressBar, progressText, stateBadge, table, time, why } from './parts.ts';
import { shortStandstill } from './standing.ts';
import { scheduleSection, targetSection, workerSection } from './surroundings.ts';
import type { Overview, RunPage, RunSummary } from './types.ts';
import { countFailures, countLeft, finalized, isFinalized, mayOperate, me, stateReason, sum } from './words.ts';

/** All active runs, and the ended ones. */
export function openRuns({ show, rename, connection, asOf, say, query }: Surroundings): Page {
  let overview: Overview | null = null;
  const ended = new EndedRuns(query, { show, rename });
  const close = follow({
    path: '/events',
    event: 'snapshot',
    read: () => get<Overview>('/overview'),
    onData: (snapshot) => {
      if (overview) tellChanges(overview.runs.active, snapshot.runs.active, say);
      if (overview && overview.runs.ended !== snapshot.runs.ended) ended.load();
      overview = snapshot;
      show();
    },
    onState: connection,
  });
  ended.load();
  return {
    title: () => (overview ? titleOf(overview.runs.active) : 'Runs'),
    view: () => html`<h1>Runs</h1>
      ${overview ? activeSection(overview, asOf()) : html`<p>Loading …</p>`}
      ${overview ? [targetSection(overview.targets), workerSection(overview.workers), scheduleSection(overview.schedules)] : nothing}
      ${ended.view(overview?.runs.ended ?? null)}`,
    close,
  };
}

/** `3 active runs, 1 halted`: a title that shows in a browser tab whether a run needs attention. */
function titleOf(active: RunSummary[]) {
  const halted = active.filter(({ state }) => state === 'halted').length;
  return `${plural(active.length, 'active runs')}${halted > 0 ? `, ${halted} halted` : ''}`;
}

function tellChanges(before: RunSummary[], after: RunSummary[], say: (words: string) => void) {
  const states = new Map(before.map(({ run, state }) => [run, state]));
  const changed = after.filter(({ run, state }) => states.has(run) && states.get(run) !== state);
  const gone = before.filter(({ run }) => !after.some((other) => other.run === run));
  const words = [
    ...changed.map((run) => `Run ${run.run} is ${run.state}. ${stateReason(run)}`),
    ...gone.map(({ run }) => `Run ${run} has ended.`),
  ];
  if (words.length > 0) say(words.join(' '));
}

function activeSection({ runs: { active }, at }: Overview, asOf: string) {
  const cards = active.map((run) => card(run, Date.parse(at), asOf));
  return html`<section aria-labelledby="active"><h2 id="active">Active <span class="soft">${count(active.length)}</span></h2>
    ${cards.length > 0 ? cards : html`<p class="soft">No run is active. ${beginning()}</p>`}</section>`;
}

/** How to make a run, for people who may. */
function beginning() {
  return mayOperate()
    ? html`<a href="/new">Make one from a list</a>, or in a terminal: <code>expunge run LIST --resource ${me.resources[0]} --base-url URL --detach</code>`
    : nothing;
}

function card(run: RunSummary, now: number, asOf: string) {
  const note = html`${run.note ? html`: <q>${run.note}</q>` : nothing}${labelsOf(run)}`;
  return html`<article class="card" aria-labelledby="run-${run.run}">
    <h3 id="run-${run.run}"><a href="/runs/${run.run}">${run.run}</a> ${stateBadge(run)} ${host(run.target)}
      ${run.account ? html`<span class="soft">${run.account}</span>` : nothing}</h3>
    ${progressBar(run)}
    ${outcomeList(run)}
    <p>${shortStandstill(run)} <span class="pace">${asOf === '' ? paceOf(run, now) : nothing}</span></p>
    <p class="soft">${progressText(run)}, submitted ${time(run.created_at)} by ${run.created_by}${note}</p>
  </article>`;
}

function paceOf({ state, per_second: perSecond, seconds_left: left }: RunSummary, now: number) {
  if (state !== 'running' || !perSecond) return '';
  const range = left === null ? null : estimateRange(left);
  return `${rate(perSecond)}${range ? `, ${leftText(range)} left, ends ${endRange(range, now)}` : ''}`;
}

const pageSize = 50;

/** The ended runs, one page at a time: there may be ten thousand. */
class EndedRuns {
  #items: RunSummary[] = [];
  #next = '';
  #problem = '';
  #isLoading = true;
  /** The cursors of the earlier pages. */
  #before: string[] = [];
  #cursor = '';
  #asked = 0;
  #query;
  #show;
  #rename;

  constructor(query: URLSearchParams, { show, rename }: Pick<Surroundings, 'show' | 'rename'>) {
    this.#query = query;
    this.#show = show;
    this.#rename = rename;
  }

  async load() {
    const asked = ++this.#asked;
    const { state, words } = this.#filter();
    const query = new URLSearchParams({ state: state || finalized.join(), sort: 'ended', limit: String(pageSize) });
    if (words) query.set('q', words);
    if (this.#cursor) query.set('cursor', this.#cursor);
    try {
      const { items, next } = await get<RunPage>(`/runs?${query}`);
      if (asked !== this.#asked) return; // another page was requested in the meantime
      [this.#items, this.#next, this.#problem] = [items, next ?? '', ''];
    } catch (error) {
      this.#problem = describeError(error);
    }
    this.#isLoading = false;
    this.#show();
  }

  #filter() {
    return { state: this.#query.get('state') ?? '', words: this.#query.get('q') ?? '' };
  }

  #turn(cursor: string) {
    this.#cursor = cursor;
    this.load();
  }

  #older() {
    this.#before.push(this.#cursor);
    this.#turn(this.#next);
  }

  #newer() {
    this.#turn(this.#before.pop() ?? '');
  }

  #search(event: SubmitEvent) {
    event.preventDefault();
    const values = new FormData(event.currentTarget as HTMLFormElement);
    const query = new URLSearchParams(
      [...values].map(([name, value]) => [name, String(value)]).filter(([, value]) => value),
    );
    this.#rename(`/${query.size > 0 ? `?${query}` : ''}`);
    [this.#query, this.#before] = [query, []];
    this.#turn('');
  }

  view(total: number | null) {
    const { state, words } = this.#filter();
    const head = html`<h2 id="ended">Ended <span class="soft">${total === null ? '' : count(total)}</span></h2>`;
    if (total === 0)
      return html`<section aria-labelledby="ended">${head}<p class="soft">No run has ended yet, or the ended runs are no longer kept.</p></section>`;
    const hasPages = this.#before.length > 0 || this.#next !== '';
    return html`<section aria-labelledby="ended">${head}
      <form class="filter" role="search" aria-label="Ended runs" @submit=${(event: SubmitEvent) => this.#search(event)}>
        <label>State <select name="state" @change=${submitForm}>${['', ...finalized].map(
          (one) => html`<option value=${one} .selected=${one === state}>${one || 'any'}</option>`,
        )}</select></label>
        <label>Search <input type="search" name="q" .value=${words} placeholder="run, file, who or why"></label>
        <button>Search</button>
      </form>
      ${alarm(this.#problem)}
      ${this.#items.length > 0 ? endedTable(this.#items) : html`<p class="soft">${this.#isLoading ? 'Loading …' : 'No ended run matches.'}</p>`}
      ${hasPages ? this.#buttons() : nothing}</section>`;
  }

  #buttons() {
    return html`<p class="buttons">
      <button ?disabled=${this.#before.length === 0} @click=${() => this.#newer()}>Newer</button>
      <button ?disabled=${this.#next === ''} @click=${() => this.#older()}>Older</button></p>`;
  }
}

function submitForm(event: Event) {
  (event.target as HTMLSelectElement).form?.requestSubmit();
}

function labelsOf({ labels }: RunSummary) {
  const words = Object.entries(labels).map((label) => label.join('='));
  return words.length > 0 ? html` <span class="soft">(${words.join(', ')})</span>` : nothing;
}

function endedTable(runs: RunSummary[]) {
  const rows = runs.map((run) => [
    html`<a href="/runs/${run.run}">${run.run}</a>`,
    html`${stateBadge(run)} ${isFinalized(run) ? nothing : why(run)}`,
    host(run.target),
    count(run.rows),
    count(sum(run, ({ is_success }) => is_success)),
    countFailures(run) > 0 ? html`<b class="bad">${count(countFailures(run))}</b>` : '0',
    countLeft(run) > 0 ? count(countLeft(run)) : '0',
    html`${run.created_by}${run.note ? html` <br><span class="soft">${run.note}</span>` : nothing}${labelsOf(run)}`,
    time(run.ended_at),
  ]);
  const names = ['Run', 'State', 'Target', 'Rows', 'Succeeded', 'Failures', 'Left', 'Who and why', 'Ended'];
  return table('Ended runs', names, rows, [3, 4, 5, 6], 'flow');
}
