import * as lit from '/assets/lit-html/lit-html.js';
import { visible } from '/assets/model/visible.js';

// The only way of text into a page. File names, ids, reasons and answers of servers may hold control and format characters; people see them here as
// on a terminal and in the report. Data for the server is never taken from the text of a page, and stays exact.

export type { TemplateResult } from '/assets/lit-html/lit-html.js';
export { nothing, render } from '/assets/lit-html/lit-html.js';
export { visible, visibleId } from '/assets/model/visible.js';

/** A template of HTML. Its texts, and attributes that people read, pass `visible`; links, values of fields and properties do not. */
export function html(parts: TemplateStringsArray, ...values: unknown[]) {
  return lit.html(parts, ...shown(parts, values));
}

/** Does the same for the contents of an SVG. */
export function svg(parts: TemplateStringsArray, ...values: unknown[]) {
  return lit.svg(parts, ...shown(parts, values));
}

function shown(parts: TemplateStringsArray, values: unknown[]) {
  const areRead = known.get(parts) ?? placesIn(parts);
  known.set(parts, areRead);
  return values.map((value, i) => (areRead[i] ? visibleIn(value) : value));
}

/** Whether people read each value of a template. A page has a few hundred templates, and draws them every second. */
const known = new WeakMap<TemplateStringsArray, boolean[]>();

function placesIn(parts: TemplateStringsArray) {
  let before = '';
  return parts.slice(0, -1).map((part) => {
    before += part;
    const tag = before.slice(before.lastIndexOf('<'));
    return !tag.startsWith('<') || tag.includes('>') || /\s(?:title|aria-label|placeholder)=(?:"[^"]*)?$/.test(tag);
  });
}

function visibleIn(value: unknown): unknown {
  if (typeof value === 'string') return visible(value);
  return Array.isArray(value) ? value.map(visibleIn) : value;
}
