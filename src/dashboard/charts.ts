import { count, millis, moment, rate } from './format.ts';
import { html, nothing } from './markup.ts';
import { type Content, swatch, table, time } from './parts.ts';
import { type Chart, drawPlot, type Series } from './plot.ts';
import type { Point, RunHistory } from './types.ts';
import { countOf, sentOutcomes, styleNumber } from './words.ts';

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
        of: (point) => perSecond(countOf(point, word), point),
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

/** The charts of a run, with its events as numbered lines. A chart without a value is left out. */
export class Charts {
  #history: RunHistory = { points: [], events: [], waits: [] };
  /** What the pointer is on, by chart. */
  #read = new Map<string, string>();
  #isOpen = false;
  #show;

  constructor(show: () => void) {
    this.#show = show;
  }

  /** What is not recorded to the end is not drawn. */
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
    return html`${shown.map((chart) => this.#figure(chart))}${this.#numbers(shown)}`;
  }

  #figure(chart: Chart) {
    const { id, title, series } = chart;
    const keys = series.map(
      ({ name, style }) => html`<li>${chart.isStacked ? swatch(style) : line(style)}${name}</li>`,
    );
    return html`<figure><figcaption><b>${title}</b><ul class="keys">${keys}</ul>
      <span class="soft read">${this.#read.get(id) ?? ''}</span></figcaption>
      <div class="plot" id="plot-${id}" role="img" aria-label="${title} over time; the numbers stand in the table below"></div></figure>`;
  }

  /** Draws the shapes into the places that `view` made. */
  async draw() {
    const { points, events } = this.#history;
    for (const chart of charts()) {
      const place = document.querySelector(`#plot-${chart.id}`);
      const series = chart.series.filter(({ of }) => points.some((point) => (of(point) ?? 0) > 0));
      if (!(place instanceof HTMLElement) || series.length === 0) continue;
      const onPoint = (point: Point | null) => this.#point(chart, series, point);
      await drawPlot(place, { ...chart, series }, points, events, onPoint).catch(() => {}); // while the server is away: the table has the numbers
    }
  }

  #point({ id, text }: Chart, series: Series[], point: Point | null) {
    const values = point ? series.map(({ name, of }) => `${name} ${text(of(point) ?? 0)}`) : [];
    const words = point ? `${moment(point.to)}: ${values.join(', ')}` : '';
    if (this.#read.get(id) === words) return;
    this.#read.set(id, words);
    this.#show();
  }

  /** The same as a table, for those who see no chart. */
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
    const toggle = (event: Event) => {
      this.#isOpen = (event.target as HTMLDetailsElement).open;
      this.#show();
    };
    return html`<details @toggle=${toggle}><summary>The numbers of the charts</summary>
      <div class="numbers" role="region" aria-label="Numbers" tabindex="0">${this.#isOpen ? table('The numbers of the charts', names, this.#history.points.map(row), numbers) : nothing}</div></details>`;
  }
}

function line(style: number): Content {
  return html`<svg class="swatch" aria-hidden="true"><path class="l${style}" d="M0 6H22"/></svg>`;
}
