import { count, duration, millis, moment, plural, rate } from './format.ts';
import { html, nothing } from './markup.ts';
import { type Content, swatch, table, time } from './parts.ts';
import { type Chart, drawPlot, type Pointed, type Series } from './plot.ts';
import type { Point, RunHistory, Wait } from './types.ts';
import { countOutcome, sentOutcomes, styleNumber } from './words.ts';

/** A count as a rate over the whole bin. */
function perSecond(n: number, { from, to }: Point) {
  return (1_000 * Math.max(0, n)) / (Date.parse(to) - Date.parse(from));
}

function charts(): Chart[] {
  return [
    {
      id: 'ids',
      title: 'Ids by outcome',
      isStacked: true,
      text: rate,
      series: sentOutcomes().map((word) => ({
        name: word.outcome,
        style: styleNumber(word),
        of: (point) => perSecond(countOutcome(point, word), point),
      })),
    },
    {
      id: 'requests',
      title: 'Requests',
      isStacked: false,
      text: rate,
      series: [
        { name: 'allowed', style: 1, of: (point) => point.rate_allowed },
        { name: 'achieved', style: 0, of: (point) => point.rate_achieved },
      ],
    },
    {
      id: 'throttled',
      title: 'Throttled',
      isStacked: true,
      text: rate,
      series: [{ name: 'throttled', style: 4, of: (point) => perSecond(point.throttled, point) }],
    },
    {
      id: 'latency',
      title: 'Latency',
      isStacked: false,
      text: millis,
      series: [
        { name: 'p95', style: 4, of: (point) => point.latency_ms?.p95 ?? null },
        { name: 'p50', style: 1, of: (point) => point.latency_ms?.p50 ?? null },
      ],
    },
  ];
}

/** The charts of a run, with its events as numbered lines and its waits as areas. A chart without values is left out. */
export class Charts {
  #history: RunHistory = { points: [], events: [], waits: [] };
  /** The text about the point under the pointer, by chart. */
  #read = new Map<string, string>();
  /** The open tables. */
  #open = new Set<string>();
  /** Whether the drawing code could not be loaded when it was last needed. */
  #isUnloaded = false;
  #show;

  constructor(show: () => void) {
    this.#show = show;
  }

  /** Takes the history, without points whose recording has not ended. */
  set history(history: RunHistory) {
    this.#history = { ...history, points: history.points.filter(({ open }) => !open) };
  }

  view() {
    const { points } = this.#history;
    const shown = charts()
      .map((chart) => ({
        ...chart,
        series: chart.series.filter(({ of }) => points.some((point) => (of(point) ?? 0) > 0)),
      }))
      .filter(({ series }) => series.length > 0);
    if (shown.length === 0) return html`<p class="soft">Nothing is measured yet.</p>`;
    const unloaded = html`<p class="soft" role="status">The charts could not be loaded. Their numbers are in the table below.</p>`;
    return html`${this.#isUnloaded ? unloaded : nothing}${shown.map((chart) => this.#figure(chart))}${this.#waits()}${this.#numbers(shown)}`;
  }

  #figure(chart: Chart) {
    const { id, title, series } = chart;
    const { waits } = this.#history;
    const shaded = waits.length > 0 ? `, ${plural(waits.length, 'waits')} shaded` : '';
    const keys = series.map(
      ({ name, style }) => html`<li>${chart.isStacked ? swatch(style) : line(style)}${name}</li>`,
    );
    return html`<figure><figcaption><b>${title}</b><ul class="keys">${keys}${waits.length > 0 ? html`<li><span class="swatch wait" aria-hidden="true"></span>waiting</li>` : nothing}</ul>
      <span class="soft read">${this.#read.get(id) ?? ''}</span></figcaption>
      <div class="plot" id="plot-${id}" role="img" aria-label="${title} over time${shaded}; the numbers are in the tables below"></div></figure>`;
  }

  /** Draws the charts into the places that `view` made. */
  async draw() {
    const { points } = this.#history;
    let isUnloaded = false;
    for (const chart of charts()) {
      const place = document.querySelector(`#plot-${chart.id}`);
      const series = chart.series.filter(({ of }) => points.some((point) => (of(point) ?? 0) > 0));
      if (!(place instanceof HTMLElement) || series.length === 0) continue;
      const onPointer = (pointed: Pointed | null) => this.#point(chart, series, pointed);
      await drawPlot(place, { ...chart, series }, this.#history, onPointer).catch(() => {
        isUnloaded = true; // the server is away; each drawing asks again
      });
    }
    if (isUnloaded === this.#isUnloaded) return;
    this.#isUnloaded = isUnloaded;
    this.#show();
  }

  #point({ id, text }: Chart, series: Series[], pointed: Pointed | null) {
    const words = pointed === null ? '' : pointedText(pointed, series, text);
    if (this.#read.get(id) === words) return;
    this.#read.set(id, words);
    this.#show();
  }

  /** The same as a table, for people who cannot see the charts. */
  #numbers(shown: Chart[]) {
    const all = shown.flatMap(({ series, text }) => series.map(({ name, of }) => ({ name, of, text })));
    const row = (point: Point): Content[] => [
      time(point.to),
      ...all.map(({ of, text }) => {
        const value = of(point);
        return value === null ? '–' : text(value);
      }),
      count(point.requests),
    ];
    const names = ['Until', ...all.map(({ name }) => name), 'requests'];
    const numbers = names.map((_, i) => i).slice(1);
    return this.#details('The numbers of the charts', 'Numbers', () =>
      table('The numbers of the charts', names, this.#history.points.map(row), numbers),
    );
  }

  /** The waits of the run and their causes, in words: the shaded areas of the charts. */
  #waits() {
    const { waits } = this.#history;
    if (waits.length === 0) return nothing;
    const row = ({ from, to, text }: Wait) => [
      time(from),
      to === null ? 'not ended' : time(to),
      to === null ? '' : duration((Date.parse(to) - Date.parse(from)) / 1_000),
      text,
    ];
    const names = ['From', 'Until', 'Lasted', 'Waiting for'];
    const title = html`Waits <span class="soft">${count(waits.length)}, shaded in the charts</span>`;
    return this.#details(title, 'Waits', () => table('Waits', names, waits.map(row)));
  }

  /** A long table, made when it is opened. */
  #details(summary: Content, name: string, content: () => Content) {
    const toggle = (event: Event) => {
      if ((event.target as HTMLDetailsElement).open) this.#open.add(name);
      else this.#open.delete(name);
      this.#show();
    };
    return html`<details @toggle=${toggle}><summary>${summary}</summary>
      <div class="numbers" role="region" aria-label=${name} tabindex="0">${this.#open.has(name) ? content() : nothing}</div></details>`;
  }
}

/** `15:00:41: allowed 200/s, achieved 180/s; waiting: the server answered 429` */
function pointedText({ at, point, wait }: Pointed, series: Series[], text: Chart['text']) {
  const values = point ? series.map(({ name, of }) => `${name} ${text(of(point) ?? 0)}`).join(', ') : '';
  const waiting = wait ? `waiting${wait.text ? `: ${wait.text}` : ''}` : '';
  const words = [values, waiting].filter(Boolean).join('; ');
  return words === '' ? '' : `${moment(point?.to ?? new Date(at).toISOString())}: ${words}`;
}

function line(style: number): Content {
  return html`<svg class="swatch" aria-hidden="true"><path class="l${style}" d="M0 6H22"/></svg>`;
}
