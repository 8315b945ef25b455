// Draws charts with uPlot, which is loaded when the first one is needed. The colours come from the style sheet, so that they follow its dark and
// light variants.

import type UPlot from 'uplot';
import type { Point, RunEvent, RunHistory, Wait } from './types.ts';
import { strokes } from './words.ts';

/** A value at each point; null = none. `style`: the number of its colour and pattern. */
export type Series = { name: string; style: number; of: (point: Point) => number | null };

export type Chart = {
  id: string;
  title: string;
  series: Series[];
  isStacked: boolean;
  text: (value: number) => string;
};

/** The time under the pointer, with the point and the wait there. */
export type Pointed = { at: number; point: Point | null; wait: Wait | null };

type Shown = {
  key: string;
  times: number[];
  points: (Point | null)[];
  events: RunEvent[];
  waits: Wait[];
  onPointer: (pointed: Pointed | null) => void;
};

const drawn = new WeakMap<HTMLElement, Shown & { plot: UPlot }>();
const height = 160;

/** Possible distances between two times of an axis, in seconds. */
const steps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 14_400, 28_800, 86_400, 604_800];

let loading: Promise<typeof UPlot> | null = null;

/** Loads uPlot as a plain script, which is a third of the size of the module. */
function loadUPlot(): Promise<typeof UPlot> {
  loading ??= new Promise((resolve, reject) => {
    const style = document.createElement('link');
    Object.assign(style, { rel: 'stylesheet', href: '/assets/uplot/uPlot.min.css' });
    const script = document.createElement('script');
    script.src = '/assets/uplot/uPlot.iife.min.js';
    script.onload = () => resolve((window as unknown as { uPlot: typeof UPlot }).uPlot);
    script.onerror = () => {
      loading = null; // the next drawing tries again
      reject(new Error('the charts could not be loaded'));
    };
    document.head.append(style, script);
  });
  return loading;
}

/** Draws a chart into a place, or redraws it. */
export async function drawPlot(
  place: HTMLElement,
  chart: Chart,
  { points, events, waits }: RunHistory,
  onPointer: (pointed: Pointed | null) => void,
) {
  const uPlot = await loadUPlot();
  const { data, columns } = columnsOf(chart, points);
  const times = data[0] as number[];
  const key = chart.series.map(({ name }) => name).join();
  const known = drawn.get(place);
  if (known?.key === key) {
    Object.assign(known, { times, events, waits, onPointer, points: columns });
    known.plot.setData(data);
    return;
  }
  known?.plot.destroy();
  const shown: Shown = { key, times, points: columns, events, waits, onPointer };
  const plot = new uPlot(optionsOf(uPlot, chart, place.clientWidth, shown), data, place);
  drawn.set(place, Object.assign(shown, { plot }));
  new ResizeObserver(() => plot.setSize({ width: place.clientWidth, height })).observe(place);
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => plot.redraw());
}

/**
 * The values in the form of uPlot: one list per series, next to their times. A value stays level until the next one; a pause is a gap. Stacked series
 * are summed up. `columns`: the point of each time, or null in a gap.
 */
function columnsOf({ series, isStacked }: Chart, points: Point[]) {
  const levels: [number, Point, boolean][] = points.flatMap((point, i) => {
    const to = Date.parse(point.to) / 1_000;
    const from = Date.parse(point.from) / 1_000;
    const next = points[i + 1];
    const nextFrom = next ? Date.parse(next.from) / 1_000 : Number.POSITIVE_INFINITY;
    const step: [number, Point, boolean][] = [[from, point, true]];
    return nextFrom - to < 1
      ? step
      : [...step, [Math.max(to, from + 0.001), point, true], [Math.max(to, from) + 0.002, point, false]];
  });
  const values = series.map(({ of }) => levels.map(([, point, isThere]) => (isThere ? of(point) : null)));
  const shown = isStacked ? stacked(values) : values;
  const data = [levels.map(([at]) => at), ...shown] as UPlot.AlignedData;
  return { data, columns: levels.map(([, point, isThere]) => (isThere ? point : null)) };
}

function stacked(values: (number | null)[][]) {
  const below: number[] = (values[0] ?? []).map(() => 0);
  return values.map((one) =>
    one.map((value, i) => {
      below[i] = (below[i] ?? 0) + (value ?? 0);
      return value === null ? null : (below[i] ?? 0);
    }),
  );
}

function optionsOf(uPlot: typeof UPlot, chart: Chart, width: number, shown: Shown): UPlot.Options {
  const { series, isStacked, text } = chart;
  const axis = {
    stroke: () => color('--soft'),
    grid: { stroke: () => color('--line'), width: 1 },
    ticks: { show: false },
  };
  const paths = uPlot.paths.stepped?.({ align: 1 });
  return {
    width,
    height,
    legend: { show: false },
    padding: [16, 32, 0, 0],
    cursor: { drag: { x: false, y: false }, points: { show: false }, y: false },
    scales: { x: { time: true }, y: { range: (_, __, most) => [0, (most || 1) * 1.05] } },
    axes: [
      {
        ...axis,
        font: '12px system-ui',
        size: 26,
        space: 90,
        incrs: steps,
        values: (_, at, __, ___, step) => at.map((one) => axisTime(one, step)),
      },
      {
        ...axis,
        font: '12px system-ui',
        size: 64,
        values: (_, values) => values.map((value) => text(value)),
        space: 36,
      },
    ],
    series: [
      {},
      ...series.map((one) => ({ ...strokeOf(one, isStacked), points: { show: false }, ...(paths && { paths }) })),
    ],
    bands: isStacked
      ? series.slice(1).map((one, i) => ({ series: [i + 2, i + 1], fill: () => pattern(one.style) }))
      : [],
    hooks: {
      drawClear: [(plot) => shadeWaits(plot, shown.waits)], // behind grid and lines
      draw: [(plot) => markEvents(plot, shown.events)],
      setCursor: [(plot) => shown.onPointer(pointedIn(plot, shown))],
    },
  };
}

/** The strokes of a series: lines also differ by their dashes. */
function strokeOf({ style }: Series, isStacked: boolean) {
  return isStacked
    ? { width: 0, fill: () => pattern(style) }
    : { stroke: () => color(`--s${style}`), width: 1.7, ...(dashes[style] && { dash: dashes[style] }) };
}

const dashes: Record<number, number[]> = { 1: [6, 3], 4: [2, 3] };

/** The time under the pointer, with the point and the wait there; null if the pointer is elsewhere. */
function pointedIn({ cursor: { left, idx }, posToVal }: UPlot, { points, waits }: Shown): Pointed | null {
  if (left === undefined || left < 0) return null;
  const at = posToVal(left, 'x') * 1_000;
  return { at, point: points[idx ?? -1] ?? null, wait: waits.find((wait) => isIn(wait, at)) ?? null };
}

function isIn({ from, to }: Wait, at: number) {
  return Date.parse(from) <= at && (to === null || at < Date.parse(to));
}

/** Shades each time in which the run waited. A wait that has not ended reaches to the edge. */
function shadeWaits({ ctx, bbox, valToPos }: UPlot, waits: Wait[]) {
  const edge = bbox.left + bbox.width;
  const across = (time: string) => valToPos(Date.parse(time) / 1_000, 'x', true);
  ctx.save();
  ctx.fillStyle = color('--soft');
  ctx.globalAlpha = 0.25;
  for (const { from, to } of waits) {
    const left = Math.max(bbox.left, across(from));
    const right = Math.min(edge, Math.max(to === null ? edge : across(to), left + devicePixelRatio));
    if (left < right) ctx.fillRect(left, bbox.top, right - left, bbox.height);
  }
  ctx.restore();
}

const labelWidth = 16;

/** Draws a line at each event, with its number in the list. */
function markEvents({ ctx, bbox, valToPos }: UPlot, events: RunEvent[]) {
  const scale = devicePixelRatio;
  ctx.save();
  ctx.strokeStyle = color('--soft');
  ctx.fillStyle = color('--text');
  ctx.font = `${11 * scale}px system-ui`;
  ctx.textAlign = 'center';
  ctx.setLineDash([3 * scale, 3 * scale]);
  ctx.globalAlpha = 0.7;
  let labelled = Number.NEGATIVE_INFINITY;
  for (const [i, { at }] of events.entries()) {
    const x = Math.round(valToPos(Date.parse(at) / 1_000, 'x', true));
    if (x < bbox.left || x > bbox.left + bbox.width) continue;
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    if (x - labelled < labelWidth * scale) continue;
    ctx.fillText(String(i + 1), x, bbox.top - 3 * scale);
    labelled = x;
  }
  ctx.restore();
}

function axisTime(seconds: number, step: number) {
  const time = new Date(seconds * 1_000).toTimeString();
  return step < 60 ? time.slice(0, 8) : time.slice(0, 5);
}

function color(name: string) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** The pattern of a number, as in the other parts of the page. */
function pattern(style: number): CanvasPattern {
  const size = 8 * devicePixelRatio;
  const canvas = document.createElement('canvas');
  canvas.width = size;
  canvas.height = size;
  const context = canvas.getContext('2d') as CanvasRenderingContext2D;
  context.scale(devicePixelRatio, devicePixelRatio);
  context.fillStyle = color(`--s${style}`);
  context.fillRect(0, 0, 8, 8);
  context.strokeStyle = color('--ink');
  context.stroke(new Path2D(strokes[style] ?? ''));
  return context.createPattern(canvas, 'repeat') as CanvasPattern;
}
