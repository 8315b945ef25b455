// Draws charts with uPlot, which is loaded when the first one is needed. Colours are those of the style sheet, so that they follow its dark
// and its light one.

import { strokes } from './words.js';

/** @import { Chart, Series } from './charts.js' */
/** @import { Point, RunEvent } from './types.js' */
/** @typedef {import('uplot')} UPlot */
/** @typedef {{ plot: UPlot, key: string, times: number[], points: (Point | null)[], events: RunEvent[], onPoint: (point: Point | null) => void }} Drawn */

/** @type {WeakMap<HTMLElement, Drawn>} */
const drawn = new WeakMap();
const height = 160;

/** Between two times of an axis, in seconds. */
const steps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 14_400, 28_800, 86_400, 604_800];

/** @type {Promise<typeof import('uplot')> | null} */
let loading = null;

/** It comes as a plain script: that is a third of the module. @returns {Promise<typeof import('uplot')>} */
function loadUPlot() {
  loading ??= new Promise((resolve, reject) => {
    const style = document.createElement('link');
    Object.assign(style, { rel: 'stylesheet', href: '/assets/uplot/uPlot.min.css' });
    const script = document.createElement('script');
    script.src = '/assets/uplot/uPlot.iife.min.js';
    script.onload = () => resolve(/** @type {any} */ (window).uPlot);
    script.onerror = reject;
    document.head.append(style, script);
  });
  return loading;
}

/** Draws a chart into a place, or draws it anew there. @param {HTMLElement} place @param {Chart} chart @param {Point[]} points @param {RunEvent[]} events @param {(point: Point | null) => void} onPoint */
export async function drawPlot(place, chart, points, events, onPoint) {
  const uPlot = await loadUPlot();
  const { data, columns } = columnsOf(chart, points);
  const times = /** @type {number[]} */ (data[0]);
  const key = chart.series.map(({ name }) => name).join();
  const known = drawn.get(place);
  if (known?.key === key) {
    Object.assign(known, { times, events, onPoint, points: columns });
    known.plot.setData(data);
    return;
  }
  known?.plot.destroy();
  /** @type {Drawn} */
  const state = { plot: /** @type {any} */ (null), key, times, points: columns, events, onPoint };
  state.plot = new uPlot(optionsOf(uPlot, chart, place.clientWidth, state), data, place);
  drawn.set(place, state);
  new ResizeObserver(() => state.plot.setSize({ width: place.clientWidth, height })).observe(place);
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => state.plot.redraw());
}

/**
 * The values as uPlot takes them: one list a series, beside their times. A value stays level until the next one; a pause is a gap. Stacked
 * series are summed up. `columns`: the point of each time, or null in a gap.
 * @param {Chart} chart @param {Point[]} points
 */
function columnsOf({ series, isStacked }, points) {
  /** @type {[number, Point, boolean][]} */
  const levels = points.flatMap((point, i) => {
    const to = Date.parse(point.to) / 1_000;
    const from = Math.max(Date.parse(point.from) / 1_000, to - point.active_seconds);
    const next = points[i + 1];
    const nextFrom = next ? Date.parse(next.to) / 1_000 - next.active_seconds : Number.POSITIVE_INFINITY;
    /** @type {[number, Point, boolean][]} */
    const step = [[from, point, true]];
    return nextFrom - to < 1
      ? step
      : [...step, [Math.max(to, from + 0.001), point, true], [Math.max(to, from) + 0.002, point, false]];
  });
  const values = series.map(({ of }) => levels.map(([, point, isThere]) => (isThere ? of(point) : null)));
  const shown = isStacked ? stacked(values) : values;
  const data = /** @type {import('uplot').AlignedData} */ ([levels.map(([at]) => at), ...shown]);
  return { data, columns: levels.map(([, point, isThere]) => (isThere ? point : null)) };
}

/** @param {(number | null)[][]} values */
function stacked(values) {
  /** @type {number[]} */
  const below = (values[0] ?? []).map(() => 0);
  return values.map((one) =>
    one.map((value, i) => {
      below[i] = (below[i] ?? 0) + (value ?? 0);
      return value === null ? null : (below[i] ?? 0);
    }),
  );
}

/** @param {typeof import('uplot')} uPlot @param {Chart} chart @param {number} width @param {Drawn} state @returns {import('uplot').Options} */
function optionsOf(uPlot, chart, width, state) {
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
      draw: [(plot) => markEvents(plot, state.events)],
      setCursor: [
        ({ cursor }) =>
          state.onPoint(cursor.left === undefined || cursor.left < 0 ? null : (state.points[cursor.idx ?? -1] ?? null)),
      ],
    },
  };
}

/** Lines differ by their dashes, too. @param {Series} series @param {boolean} isStacked */
function strokeOf({ style }, isStacked) {
  return isStacked
    ? { width: 0, fill: () => pattern(style) }
    : { stroke: () => color(`--s${style}`), width: 1.7, ...(dashes[style] && { dash: dashes[style] }) };
}

/** @type {Record<number, number[]>} */
const dashes = { 1: [6, 3], 4: [2, 3] };

const labelWidth = 16;

/** A line at each event, with its number in the list. @param {UPlot} plot @param {RunEvent[]} events */
function markEvents({ ctx, bbox, valToPos }, events) {
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

/** @param {number} seconds @param {number} step */
function axisTime(seconds, step) {
  const time = new Date(seconds * 1_000).toTimeString();
  return step < 60 ? time.slice(0, 8) : time.slice(0, 5);
}

/** @param {string} name */
function color(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** The pattern of a number, as on the rest of the page. @param {number} style @returns {CanvasPattern} */
function pattern(style) {
  const size = 8 * devicePixelRatio;
  const canvas = document.createElement('canvas');
  canvas.width = size;
  canvas.height = size;
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext('2d'));
  context.scale(devicePixelRatio, devicePixelRatio);
  context.fillStyle = color(`--s${style}`);
  context.fillRect(0, 0, 8, 8);
  context.strokeStyle = color('--ink');
  context.stroke(new Path2D(strokes[style] ?? ''));
  return /** @type {CanvasPattern} */ (context.createPattern(canvas, 'repeat'));
}
