import { address, describeError, get } from './api.ts';
import { count, plural } from './format.ts';
import { html, nothing } from './markup.ts';
import { alarm, idText, swatch, table } from './parts.ts';
import type { FailureGroup, OutcomeWord, RunSummary } from './types.ts';
import { countFailures, countLeft, countOutcome, isFailure, me, styleNumber } from './words.ts';

const minWaitMs = 5_000; // reading them takes the server longer than anything else

/** The failures of a run, by reason. They are read again when there are more, but at intervals. */
export class Failures {
  #groups: FailureGroup[] = [];
  #problem = '';
  #known = -1;
  #readAt = Number.NEGATIVE_INFINITY;
  #isReading = false;
  #id;
  #show;

  constructor(id: string, show: () => void) {
    this.#id = id;
    this.#show = show;
  }

  /** Takes the current number of failures. */
  expect(n: number, isFinalized: boolean) {
    const known = n + (isFinalized ? 0.5 : 0); // the end of a run may bring other samples
    const isNew = known !== this.#known && (n > 0 || this.#known > 0);
    if (!isNew || this.#isReading || performance.now() - this.#readAt < minWaitMs) return;
    this.#known = known;
    this.#read();
  }

  async #read() {
    this.#isReading = true;
    try {
      const found = await get<{ items: FailureGroup[] }>(`/runs/${this.#id}/failures`);
      this.#groups = found.items;
      this.#problem = '';
    } catch (error) {
      this.#problem = describeError(error);
    }
    this.#isReading = false;
    this.#readAt = performance.now();
    this.#show();
  }

  /** The view. The counters of the run give the totals and the files with all failures; groups are read later. */
  view(run: RunSummary) {
    const total = countFailures(run);
    const groups = this.#groups.filter(({ outcome }) => wordOf(outcome)?.is_left !== true);
    const grouped = groups.reduce((sum, group) => sum + group.count, 0);
    const lag =
      grouped < total ? html`<p class="soft">${count(total - grouped)} are not in the groups yet.</p>` : nothing;
    return html`<section aria-labelledby="failures"><h2 id="failures">Failures <span class="soft">${count(total)}</span></h2>
      ${alarm(this.#problem)}
      ${total === 0 ? html`<p class="good">None.</p>` : downloads(this.#id, `all ${count(total)}`, had(run, isFailure))}
      ${groups.map((group) => this.#group(group))}${lag}${this.#left(run)}</section>`;
  }

  #left(run: RunSummary) {
    const only = had(run, ({ is_left }) => is_left);
    if (only === '') return nothing;
    return html`<h3>Left <span class="soft">${count(countLeft(run))}</span></h3>
      <p>The run ended before these ids were sent: the API got no request for them.</p>
      ${downloads(this.#id, plural(countLeft(run), 'ids'), only)}`;
  }

  #group({ outcome, code, words, count: n, samples }: FailureGroup) {
    const word = wordOf(outcome);
    const rows = samples.map(({ file, line, id, excerpt }) => [
      idText(id),
      file ? `${file}:${line}` : String(line),
      excerpt ?? '',
    ]);
    const others = n - samples.length;
    return html`<details class="group"><summary>${word?.of_id ? swatch(styleNumber(word)) : nothing}
        <b>${outcome}</b> · ${words.replace(/\.$/, '') || code} · <b>${count(n)}</b></summary>
      ${rows.length > 0 ? table(`Samples of ${outcome}, ${code}`, ['Id', 'Row', 'Answer'], rows, [], 'flow') : nothing}
      ${others > 0 ? html`<p class="soft">and ${count(others)} more</p>` : nothing}
      ${downloads(this.#id, plural(n, 'rows'), code || outcome)}</details>`;
  }
}

function wordOf(outcome: string) {
  return me.outcomes.find((one) => one.outcome === outcome);
}

/** The outcomes of this kind that rows of the run have, as a report takes them. */
function had(run: RunSummary, isMeant: (word: OutcomeWord) => boolean) {
  return me.outcomes
    .filter((word) => isMeant(word) && countOutcome(run, word) > 0)
    .map(({ outcome }) => outcome)
    .join();
}

function downloads(run: string, what: string, only: string) {
  const link = (format: string) => address(`/runs/${run}/report?${new URLSearchParams({ only, format })}`);
  return html`<p class="soft">Download ${what}: <a href=${link('csv')} download>CSV</a>, <a href=${link('ndjson')} download>NDJSON</a></p>`;
}
