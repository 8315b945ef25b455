import { html, nothing, svg } from '/assets/lit-html/lit-html.js';
import { count, hostOf, moment, percent, utc } from './format.js';
import { countOf, idOutcomes, idsOf, me, reasonOf, strokes, styleNumber, symbolOf, toneOf } from './words.js';

/** @import { TemplateResult } from '/assets/lit-html/lit-html.js' */
/** @import { OutcomeWord, RunSummary } from './types.js' */
/** @typedef {TemplateResult | string | number | typeof nothing} Content */

/** A moment by the clock of the reader, in UTC as its title. @param {string | null | undefined} iso */
export function time(iso) {
  return iso ? html`<time datetime=${iso} title=${utc(iso)}>${moment(iso)}</time>` : '–';
}

/** A target, which may be broken into two lines at its slashes. @param {string} url */
export function host(url) {
  const [first = '', ...rest] = hostOf(url).split('/');
  return html`<b class="host">${first}${rest.map((part) => html`/<wbr>${part}`)}</b>`;
}

/** @param {RunSummary} run */
export function stateBadge(run) {
  return html`<span class="badge ${toneOf(run)}"><span aria-hidden="true">${symbolOf(run)}</span> ${run.state}</span>`;
}

/** @param {RunSummary} run */
export function why(run) {
  const reason = reasonOf(run);
  return reason === '' ? nothing : html`<span class="why">${reason}</span>`;
}

/** A bar of all ids of a run, split by outcome. What is left is empty. @param {RunSummary} run */
export function progressBar(run) {
  const ids = idsOf(run);
  const settled = ids - run.pending;
  let from = 0;
  const parts = idOutcomes().map((word) => {
    const share = ids === 0 ? 0 : (countOf(run, word) / ids) * 100;
    const x = from;
    from += share;
    return share > 0 ? svg`<rect class="p${styleNumber(word)}" x="${x}%" width="${share}%" height="100%"/>` : nothing;
  });
  const text = `${percent(settled, ids)}: ${count(settled)} of ${count(ids)} ids have an outcome`;
  return html`<svg class="bar" role="img" aria-label=${text}>${parts}</svg>`;
}

/** The patterns that the shapes of a page are filled with, so that they differ without colour, too. */
export function patterns() {
  const shapes = Object.values(strokes).map(
    (d, n) => svg`<rect class="c${n}" width="8" height="8"/><path class="ink" d=${d}/>`,
  );
  return html`<svg class="defs" aria-hidden="true"><defs>${shapes.map(
    (shape, n) => svg`<pattern id="pattern${n}" width="8" height="8" patternUnits="userSpaceOnUse">${shape}</pattern>`,
  )}</defs></svg>`;
}

/** A small field in the colour and pattern of a number. @param {number} n */
export function swatch(n) {
  return html`<svg class="swatch" aria-hidden="true"><rect class="p${n}" width="100%" height="100%"/></svg>`;
}

/** What became of the rows of a run, each outcome with its pattern, its number and its share. @param {RunSummary} run */
export function outcomeList(run) {
  /** @param {OutcomeWord} word */
  const entry = (word) => html`<li title=${word.means}>
    ${word.of_id ? swatch(styleNumber(word)) : nothing}${word.outcome} <b>${count(countOf(run, word))}</b></li>`;
  const shown = me.outcomes.filter((word) => countOf(run, word) > 0);
  const left = run.pending > 0 ? html`<li>left <b>${count(run.pending)}</b></li>` : nothing;
  return html`<ul class="outcomes" aria-label="Outcomes">${shown.map(entry)}${left}</ul>`;
}

/** A table; on a phone each row is a block. @param {string} caption @param {string[]} names @param {Content[][]} rows @param {number[]} [numbers] columns that are aligned to the right */
export function table(caption, names, rows, numbers = []) {
  /** @param {number} i */
  const align = (i) => (numbers.includes(i) ? 'n' : '');
  // The roles stay where a phone shows rows as blocks.
  const head = names.map((name, i) => html`<th scope="col" role="columnheader" class=${align(i)}>${name}</th>`);
  /** @param {Content} cell @param {number} i */
  const field = (cell, i) => html`<td role="cell" class=${align(i)} data-name=${names[i]}><div>${cell}</div></td>`;
  const body = rows.map((row) => html`<tr role="row">${row.map(field)}</tr>`);
  return html`<div class="wide"><table role="table" aria-label=${caption}>
    <thead role="rowgroup"><tr role="row">${head}</tr></thead><tbody role="rowgroup">${body}</tbody></table></div>`;
}

/** Names with their values, those without one left out. @param {(readonly [string, Content | null | undefined])[]} pairs */
export function facts(pairs) {
  const shown = pairs.filter(([, value]) => value !== '' && value !== null && value !== undefined && value !== nothing);
  return html`<dl>${shown.map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>`)}</dl>`;
}

/** What went wrong, told at once. @param {string} words */
export function alarm(words) {
  return words === '' ? nothing : html`<p class="alarm" role="alert">${words}</p>`;
}
