import { count, rate, utcTime } from '../format.ts';
import { type History, separateWaits } from '../history/history.ts';
import { closedPoints, type HistoryPoint, pointOutcomes, ratePerSecond } from '../history/history-points.ts';
import { isSuccess } from '../model/outcome.ts';
import { statusesText } from '../model/status.ts';
import { html, type Markup } from './html.ts';

// Charts over the time of a run, as SVG. A shape is stretched to the width of the page. Texts are outside the shape, so they stay readable. All
// functions are pure.

/** A value at each point; null = there is none. `color`: the number of a colour of the page. */
type Series = { name: string; color: number; of: (point: HistoryPoint) => number | null };

type Chart = {
  title: string;
  series: readonly Series[];
  isStacked: boolean;
  text: (value: number) => string;
};

const width = 1_000;
const height = 100;

const goodColors = [0, 1, 2];
const badColors = [3, 4, 5];

/** A colour for each outcome: one set for good outcomes, another for bad ones. */
function outcomeSeries(): Series[] {
  const [good, bad] = [[...goodColors], [...badColors]];
  return pointOutcomes.map((outcome) => ({
    name: outcome,
    color: (isSuccess(outcome) ? good : bad).shift() ?? badColors.at(-1)!,
    of: (point) => ratePerSecond(point.counts[outcome]!, point),
  }));
}

const millis = (ms: number) =>
  ms < 1_000 ? `${Number(ms.toPrecision(2))} ms` : `${Number((ms / 1_000).toPrecision(2))} s`;

const charts: readonly Chart[] = [
  { title: 'Ids by outcome', series: outcomeSeries(), isStacked: true, text: rate },
  {
    title: 'Requests',
    series: [
      { name: 'allowed', color: 1, of: ({ allowed }) => allowed },
      { name: 'achieved', color: 0, of: ({ achieved }) => achieved },
    ],
    isStacked: false,
    text: rate,
  },
  {
    title: 'Throttled',
    series: [{ name: statusesText('throttled'), color: 4, of: (point) => ratePerSecond(point.refused, point) }],
    isStacked: true,
    text: rate,
  },
  {
    title: 'Retried',
    series: [{ name: 'errors, no answer', color: 3, of: (point) => ratePerSecond(point.retried, point) }],
    isStacked: true,
    text: rate,
  },
  {
    title: 'Latency',
    series: [
      { name: 'p95', color: 4, of: ({ latencyMs }) => latencyMs?.p95 ?? null },
      { name: 'p50', color: 1, of: ({ latencyMs }) => latencyMs?.p50 ?? null },
    ],
    isStacked: false,
    text: millis,
  },
  {
    title: 'Requests in flight, on average',
    series: [{ name: 'in flight', color: 2, of: ({ inFlight }) => inFlight }],
    isStacked: false,
    text: (n) => count(Number(n.toPrecision(2))),
  },
];

/** Draws the charts of a run, each with its events: waits as areas, other events as lines. A chart without a value is left out. */
export function drawCharts({ points: all, events }: History): Markup[] {
  const points = closedPoints(all);
  if (points.length === 0) return [html`<p>Nothing was measured.</p>`];
  const from = points[0]!.from;
  const to = Math.max(from + 1, points.at(-1)!.to);
  const across = (at: number) => round((width * (Math.min(to, Math.max(from, at)) - from)) / (to - from));
  const { waits, others } = separateWaits(events);
  const areas = waits.map((wait) => areaOf(across(wait.from), across(wait.to ?? to))).join('');
  const lines = [...new Set(others.filter(({ event }) => event !== 'rate').map(({ at }) => across(at)))]
    .map((x) => `M${x} 0V${height}`)
    .join('');
  const marks = html`<path class="wait" d="${areas}"/><path class="mark" d="${lines}"/>`;
  return charts.flatMap((chart) => {
    const shown = chart.series.filter(({ of }) => points.some((point) => (of(point) ?? 0) > 0));
    return shown.length === 0 ? [] : [drawChart({ ...chart, series: shown }, points, across, marks, [from, to])];
  });
}

function areaOf(left: number, right: number): string {
  const wide = round(Math.max(1, right - left));
  return `M${left} 0h${wide}V${height}h${-wide}z`;
}

type Across = (at: number) => number;

function drawChart(
  chart: Chart,
  points: readonly HistoryPoint[],
  across: Across,
  marks: Markup,
  ends: number[],
): Markup {
  const { title, series, isStacked, text } = chart;
  const most = maxValue(chart, points);
  const shapes = isStacked
    ? stack(series, points, most, across)
    : series.map((one) => steps(one, points, most, across));
  const keys = series.map(({ name, color }) => html`<span class="key" style="--c:var(--s${color})">${name}</span>`);
  const paths = shapes.map(
    (d, i) => html`<path class="${isStacked ? 'fill' : 'step'}" style="--c:var(--s${series[i]!.color})" d="${d}"/>\n`,
  );
  return html`<figure><figcaption><b>${title}</b>${keys}<span class="soft">up to ${text(most)}</span></figcaption>
<svg viewBox="0 0 ${width} ${height}" preserveAspectRatio="none" role="img" aria-label="${title}, up to ${text(most)}">
${marks}${paths}</svg>
<div class="axis">${ends.map((at) => html`<span>${utcTime(at, 'second')}</span>`)}</div></figure>
`;
}

/** The largest value; for stacked series, the largest sum. */
function maxValue({ series, isStacked }: Chart, points: readonly HistoryPoint[]): number {
  const values = (point: HistoryPoint) => series.map(({ of }) => of(point) ?? 0);
  return points.reduce((most, point) => {
    const all = values(point);
    return Math.max(most, isStacked ? all.reduce((sum, n) => sum + n, 0) : Math.max(...all));
  }, 0);
}

/** A shape for each series: bars, with each series on top of the previous one. */
function stack(series: readonly Series[], points: readonly HistoryPoint[], most: number, across: Across): string[] {
  const below = points.map(() => 0);
  return series.map(({ of }) =>
    points
      .map((point, i) => {
        const value = of(point) ?? 0;
        if (value === 0) return '';
        const [left, right] = [across(point.from), across(point.to)];
        const bottom = up(below[i]!, most);
        below[i]! += value;
        const wide = round(Math.max(1, right - left));
        return `M${left} ${bottom}h${wide}V${up(below[i]!, most)}h${-wide}z`;
      })
      .join(''),
  );
}

/** A line that stays level within a point, and ends if there is no value. */
function steps({ of }: Series, points: readonly HistoryPoint[], most: number, across: Across): string {
  let end: number | null = null;
  return points
    .map((point) => {
      const value = of(point);
      const left = across(point.from);
      const isJoined = value !== null && end !== null && left - end < 1;
      end = value === null ? null : across(point.to);
      return value === null ? '' : `${isJoined ? `V${up(value, most)}` : `M${left} ${up(value, most)}`}H${end}`;
    })
    .join('');
}

function up(value: number, most: number): number {
  return round(height - (value / most) * (height - 4));
}

function round(n: number): number {
  return Math.round(n * 10) / 10;
}
