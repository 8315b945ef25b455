import { count, moment, parseHost, percent, plural, utc } from './format.ts';
import { html, nothing, svg, type TemplateResult, visibleId } from './markup.ts';
import type { OutcomeWord, RunSummary } from './types.ts';
import {
  countIds,
  countLeft,
  countOutcome,
  countSettled,
  isFinalized,
  me,
  sentOutcomes,
  stateReason,
  stateSymbol,
  stateTone,
  strokes,
  styleNumber,
} from './words.ts';

/** Content of a page. */
export type Content = TemplateResult | string | number | typeof nothing;

/** A time by the clock of the reader, with the time in UTC as its title. */
export function time(iso: string | null | undefined) {
  return iso ? html`<time datetime=${iso} title=${utc(iso)}>${moment(iso)}</time>` : '–';
}

/** An id for people. */
export function idText(id: string) {
  return html`<code>${visibleId(id)}</code>`;
}

/** An outcome or a code, never broken into two lines. */
export function word(code: string) {
  return html`<span class="word">${code}</span>`;
}

/** A target, which may be broken into lines at its slashes. */
export function host(url: string) {
  const [first = '', ...rest] = parseHost(url).split('/');
  return html`<b class="host">${first}${rest.map((part) => html`/<wbr>${part}`)}</b>`;
}

/** The state of a run; for a running run that sends nothing, also why: `running · no worker`. */
export function stateBadge(run: RunSummary) {
  const cause = run.state === 'running' && run.standing ? ` · ${run.standing.why.replaceAll('_', ' ')}` : '';
  return html`<span class="badge ${stateTone(run)}"><span aria-hidden="true">${stateSymbol(run)}&#xfe0e;</span> ${run.state}${cause}</span>`;
}

export function why(run: RunSummary) {
  const reason = stateReason(run);
  return reason === '' ? nothing : html`<span class="why">${reason}</span>`;
}

/** `26.2 % of 2,000 ids`; for a cancelled run, also how many ids it left. */
export function progressText(run: RunSummary) {
  const [ids, left] = [countIds(run), countLeft(run)];
  const rest = isFinalized(run) && left > 0 ? html`, <b>${count(left)}</b> left` : nothing;
  return html`<b>${percent(ids - left, ids)}</b> of ${plural(ids, 'ids')}${rest}`;
}

/** A bar of all ids of a run, split by outcome. Ids that are left are empty space. */
export function progressBar(run: RunSummary) {
  const ids = countIds(run);
  const settled = countSettled(run);
  let from = 0;
  const parts = sentOutcomes().map((word) => {
    const share = ids === 0 ? 0 : (countOutcome(run, word) / ids) * 100;
    const x = from;
    from += share;
    return share > 0 ? svg`<rect class="p${styleNumber(word)}" x="${x}%" width="${share}%" height="100%"/>` : nothing;
  });
  const text = `${percent(settled, ids)}: ${count(settled)} of ${count(ids)} ids have an outcome`;
  return html`<svg class="bar" role="img" aria-label=${text}>${parts}</svg>`;
}

/** The fill patterns for the shapes of a page, so that they differ without colour as well. */
export function patterns() {
  const shapes = Object.values(strokes).map(
    (d, n) => svg`<rect class="c${n}" width="8" height="8"/><path class="ink" d=${d}/>`,
  );
  return html`<svg class="defs" aria-hidden="true"><defs>${shapes.map(
    (shape, n) => svg`<pattern id="pattern${n}" width="8" height="8" patternUnits="userSpaceOnUse">${shape}</pattern>`,
  )}</defs></svg>`;
}

/** A small box in the colour and pattern of a number. */
export function swatch(n: number) {
  return html`<svg class="swatch" aria-hidden="true"><rect class="p${n}" width="100%" height="100%"/></svg>`;
}

/** The outcomes of the rows of a run, each with its pattern, its number and its share. */
export function outcomeList(run: RunSummary) {
  const entry = (word: OutcomeWord) => html`<li title=${word.means}>
    ${word.of_id ? swatch(styleNumber(word)) : nothing}${word.outcome} <b>${count(countOutcome(run, word))}</b></li>`;
  const shown = me.outcomes.filter((word) => !word.is_left && countOutcome(run, word) > 0);
  const left =
    countLeft(run) > 0 ? html`<li title="without an outcome">left <b>${count(countLeft(run))}</b></li>` : nothing;
  return html`<ul class="outcomes" aria-label="Outcomes">${shown.map(entry)}${left}</ul>`;
}

/**
 * The form of a table on a narrow page: a block for each row with a line for each field, or the fields one after another in as few lines as possible.
 */
type Narrow = 'block' | 'flow';

/** A table. `numbers`: the columns that are right-aligned, and keep their names on a narrow page. */
export function table(
  caption: string,
  names: string[],
  rows: Content[][],
  numbers: number[] = [],
  narrow: Narrow = 'block',
) {
  const align = (i: number) => (numbers.includes(i) ? 'n' : '');
  // The roles are kept, because a phone shows rows as blocks.
  const head = names.map((name, i) => html`<th scope="col" role="columnheader" class=${align(i)}>${name}</th>`);
  const field = (cell: Content, i: number) =>
    html`<td role="cell" class=${align(i)} data-name=${names[i]}><div>${cell}</div></td>`;
  const body = rows.map((row) => html`<tr role="row">${row.map(field)}</tr>`);
  return html`<div class="wide"><table role="table" class=${narrow} aria-label=${caption}>
    <thead role="rowgroup"><tr role="row">${head}</tr></thead><tbody role="rowgroup">${body}</tbody></table></div>`;
}

/** Names and values, without empty ones. */
export function facts(pairs: (readonly [string, Content | null | undefined])[]) {
  const shown = pairs.filter(([, value]) => value !== '' && value !== null && value !== undefined && value !== nothing);
  return html`<dl>${shown.map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>`)}</dl>`;
}

/** An error, announced at once. */
export function alarm(words: string) {
  return words === '' ? nothing : html`<p class="alarm" role="alert">${words}</p>`;
}
