import { html, nothing } from '/assets/lit-html/lit-html.js';
import { address, get, wordsOf } from './api.ts';
import { count, plural } from './format.ts';
import { alarm, swatch, table } from './parts.ts';
import type { FailureGroup } from './types.ts';
import { me, styleNumber } from './words.ts';

const leastWaitMs = 5_000; // reading them takes the server longer than anything else

/** What failed in a run, by reason. Read again when there are more, but not all the time. */
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

  /** Tells how many there are now. */
  expect(n: number, isSealed: boolean) {
    const known = n + (isSealed ? 0.5 : 0); // the end may bring other samples
    const isNew = known !== this.#known && (n > 0 || this.#known > 0);
    if (!isNew || this.#isReading || performance.now() - this.#readAt < leastWaitMs) return;
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
      this.#problem = wordsOf(error);
    }
    this.#isReading = false;
    this.#readAt = performance.now();
    this.#show();
  }

  view(total: number) {
    const outcomes = [...new Set(this.#groups.map(({ outcome }) => outcome))];
    const all = outcomes.length > 0 ? downloads(this.#id, 'all of them', outcomes.join(',')) : nothing;
    return html`<section aria-labelledby="failures"><h2 id="failures">Failures <span class="soft">${count(total)}</span></h2>
      ${alarm(this.#problem)}
      ${total === 0 && this.#groups.length === 0 ? html`<p class="good">None.</p>` : all}
      ${this.#groups.map((group) => this.#group(group))}</section>`;
  }

  #group({ outcome, code, words, count: n, samples }: FailureGroup) {
    const word = me.outcomes.find((one) => one.outcome === outcome);
    const rows = samples.map(({ file, line, id, excerpt }) => [
      html`<code>${id}</code>`,
      file ? `${file}:${line}` : String(line),
      excerpt ?? '',
    ]);
    const others = n - samples.length;
    return html`<details class="group"><summary>${word?.of_id ? swatch(styleNumber(word)) : nothing}
        <b>${outcome}</b> · ${words.replace(/\.$/, '') || code} · <b>${count(n)}</b></summary>
      ${rows.length > 0 ? table(`Samples of ${outcome}, ${code}`, ['Id', 'Row', 'Answer'], rows) : nothing}
      ${others > 0 ? html`<p class="soft">and ${count(others)} more</p>` : nothing}
      ${downloads(this.#id, plural(n, 'rows'), code || outcome)}</details>`;
  }
}

function downloads(run: string, what: string, only: string) {
  const link = (format: string) => address(`/runs/${run}/report?${new URLSearchParams({ only, format })}`);
  return html`<p class="soft">Download ${what}: <a href=${link('csv')} download>CSV</a>, <a href=${link('ndjson')} download>NDJSON</a></p>`;
}
