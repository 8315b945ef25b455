// An HTML page that needs nothing else: no script, no network, readable in the dark and on a phone. All functions are pure.

import { visible } from '../model/visible.ts';

/** Text that is already markup. Everything else is escaped. */
export type Markup = { readonly markup: string };

/**
 * A template whose values are escaped, unless they are markup themselves; lists are joined. Ids, reasons and answers of servers are hostile: they can
 * neither end a tag nor change the direction of the text after them.
 */
export function html(parts: TemplateStringsArray, ...values: (string | number | Markup | readonly Markup[])[]): Markup {
  const texts = values.map((value) => {
    if (typeof value === 'string' || typeof value === 'number') return escaped(String(value));
    return Array.isArray(value) ? value.map(({ markup }) => markup).join('') : (value as Markup).markup;
  });
  return { markup: String.raw({ raw: parts }, ...texts) };
}

export const noMarkup: Markup = { markup: '' };

const entities: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };

function escaped(text: string): string {
  return visible(text).replace(/[&<>"']/g, (character) => entities[character]!);
}

/** Cuts a text to this many characters. */
export function cut(text: string, length: number): string {
  return text.length <= length ? text : `${text.slice(0, length)}…`;
}

/** A table of rows under column names; nothing if there are no rows. The columns in `numbers` are aligned to the right. */
export function table(
  names: readonly string[],
  rows: readonly (readonly (string | number | Markup)[])[],
  numbers: readonly number[] = [],
): Markup {
  if (rows.length === 0) return html`<p>None.</p>`;
  const style = (i: number) => (numbers.includes(i) ? html` class="n"` : noMarkup);
  const head = names.map((name, i) => html`<th${style(i)}>${name}</th>`);
  const body = rows.map((row) => html`<tr>${row.map((cell, i) => html`<td${style(i)}>${cell}</td>`)}</tr>\n`);
  return html`<div class="wide"><table><thead><tr>${head}</tr></thead><tbody>\n${body}</tbody></table></div>`;
}

/** Names with their values, without the pairs whose value is ''. */
export function facts(pairs: readonly (readonly [string, string | number | Markup])[]): Markup {
  const shown = pairs.filter(([, value]) => value !== '');
  return html`<dl>${shown.map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>\n`)}</dl>`;
}

export function section(title: string, ...content: readonly Markup[]): Markup {
  return html`<section><h2>${title}</h2>\n${content}</section>\n`;
}

/** The policy forbids the browser to load anything, whatever the page contains. */
export function page(title: string, content: readonly Markup[]): string {
  return html`<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="referrer" content="no-referrer">
<title>${title}</title>
<style>${css}</style></head>
<body><main>
${content}</main></body></html>
`.markup;
}

const css: Markup = {
  markup: `
:root{color-scheme:light dark;--back:#fff;--text:#1d2329;--soft:#5d6873;--line:#d8dde2;--panel:#f5f7f9;--good:#1a7f4b;--bad:#c0362c;
--s0:#2f9e63;--s1:#3f7fd0;--s2:#8460c4;--s3:#d2453a;--s4:#dc8a1e;--s5:#8a939c}
@media (prefers-color-scheme:dark){:root{--back:#14181c;--text:#e4e8ec;--soft:#98a3ae;--line:#343c44;--panel:#1c2227;--good:#4cc585;--bad:#f07a6f;
--s0:#4cc585;--s1:#6ea6ee;--s2:#b093ea;--s3:#f07a6f;--s4:#f0aa4c;--s5:#98a3ae}}
body{margin:0;background:var(--back);color:var(--text);font:15px/1.5 system-ui,sans-serif}
main{max-width:60rem;margin:0 auto;padding:1rem}
h1{font-size:1.4rem;margin:.5rem 0;overflow-wrap:anywhere}h2{font-size:1.1rem;margin:2rem 0 .5rem}h3{font-size:1rem;margin:1.2rem 0 .3rem}
p{margin:.3rem 0;overflow-wrap:anywhere}.soft{color:var(--soft)}.good{color:var(--good)}.bad{color:var(--bad)}
.wide{overflow-x:auto}th{white-space:nowrap}table{border-collapse:collapse;width:100%;font-size:.92rem}
th,td{text-align:left;vertical-align:top;padding:.25rem .6rem .25rem 0;border-bottom:1px solid var(--line);overflow-wrap:anywhere;min-width:4rem}
th{color:var(--soft);font-weight:500}.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap;padding-right:1.2rem;min-width:0}
td:first-child{overflow-wrap:break-word}
dl{display:grid;grid-template-columns:minmax(7rem,auto) 1fr;gap:.2rem 1rem;margin:0}dt{color:var(--soft)}dd{margin:0;overflow-wrap:anywhere}
.rehearsal{position:sticky;top:0;margin:0;padding:.4rem .8rem;background:var(--bad);color:var(--back)}@media print{.rehearsal{position:fixed;left:0;right:0}h1{margin-top:4rem}}
code{font:.9em ui-monospace,monospace;overflow-wrap:anywhere}
figure{margin:1rem 0;padding:.8rem;background:var(--panel);border-radius:6px}
figcaption{display:flex;flex-wrap:wrap;gap:.2rem 1rem;font-size:.9rem}figcaption b{font-weight:600}
.key::before{content:"";display:inline-block;width:.7em;height:.7em;margin-right:.35em;border-radius:2px;background:var(--c)}
svg{display:block;width:100%;height:9rem;border-bottom:1px solid var(--line)}
.fill{fill:var(--c);stroke:none}.step{fill:none;stroke:var(--c);stroke-width:1.5;vector-effect:non-scaling-stroke}
.wait{fill:var(--soft);opacity:.25}
.mark{stroke:var(--soft);stroke-width:1;stroke-dasharray:3 3;vector-effect:non-scaling-stroke;fill:none;opacity:.6}
.axis{display:flex;justify-content:space-between;gap:1.5rem;color:var(--soft);font-size:.8rem}
@media (max-width:36rem){dl{grid-template-columns:1fr;gap:0}dd{margin-bottom:.5rem}.axis span+span{text-align:right}
table:has(.n) :is(thead,tbody){display:block}table:has(.n) tr{display:flex;flex-wrap:wrap;border-bottom:1px solid var(--line)}
table:has(.n) :is(th,td){border:0}table:has(.n) :first-child{flex:1}table:has(.n) .n{min-width:4.5rem;padding-right:.6rem}
table:has(.n) td:last-child{flex-basis:100%;padding-top:0;color:var(--soft)}table:has(.n) th:last-child{display:none}}
`,
};
