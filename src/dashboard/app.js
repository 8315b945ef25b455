import { html, nothing, render } from '/assets/lit-html/lit-html.js';
import { get, wordsOf } from './api.js';
import { leaveQuestion } from './ask.js';
import { zone } from './format.js';
import { alarm, patterns } from './parts.js';
import { mayOperate, me, setMe } from './words.js';

/** @import { TemplateResult } from '/assets/lit-html/lit-html.js' */
/** @import { Connection } from './live.js' */

/**
 * A page: what it shows now, and what ends it. `title`: what stands in the tab of the browser; `drawn`: what follows when it was drawn.
 * @typedef {{ view: () => TemplateResult, title: () => string, drawn?: () => void, close: () => void }} Page
 *
 * What a page gets: `show` draws it anew, `go` leads to another page, `connection` says how it is connected, `say` tells those who do not see the page.
 * @typedef {{ show: () => void, go: (path: string) => void, connection: (state: Connection) => void, say: (words: string) => void, query: URLSearchParams }} Surroundings
 */

/** @type {Page | null} */
let page = null;
/** @type {Connection | ''} */
let connection = '';
let isDue = false;

/** @type {Record<Connection, string>} */
const connectionWords = {
  connecting: 'Connecting …',
  live: 'Live',
  lost: 'Connection lost, trying again. What stands here may be old.',
  hidden: 'Waits while nobody looks.',
  none: '',
};

function show() {
  if (isDue) return;
  isDue = true;
  requestAnimationFrame(() => {
    isDue = false;
    draw();
  });
}

function draw() {
  document.title = page ? `${page.title()} · expunge` : 'expunge';
  render(layout(page), /** @type {HTMLElement} */ (document.querySelector('#page')));
  page?.drawn?.();
}

/** @param {Page | null} page */
function layout(page) {
  const path = location.pathname;
  /** @param {string} to @param {string} name */
  const link = (to, name) => html`<a href=${to} aria-current=${path === to ? 'page' : nothing}>${name}</a>`;
  return html`${patterns()}
    <header>
      <a class="brand" href="/">expunge</a>
      <nav aria-label="Pages">${link('/', 'Runs')}${mayOperate() ? link('/new', 'New run') : nothing}</nav>
      ${connection && connection !== 'none' ? html`<p class="connection ${connection}"><span>${connectionWords[connection]}</span></p>` : nothing}
      <form class="who" method="post" action="/logout"><span>${me.name} <small>${me.role}</small></span><button>Sign out</button></form>
    </header>
    <main id="main" tabindex="-1">${page ? page.view() : html`<p>Loading …</p>`}</main>
    <footer>${zone() === 'UTC' ? 'Times are in UTC.' : `Times are in ${zone()}; point at one to read it in UTC.`}</footer>`;
}

/** @returns {Page} */
function openNothing() {
  return {
    title: () => 'No such page',
    view: () =>
      html`<h1>No such page</h1><p>Nothing is at <code>${location.pathname}</code>. <a href="/">See all runs</a></p>`,
    close: () => {},
  };
}

/** @param {Connection} state */
function setConnection(state) {
  if (state === 'lost' && connection !== 'lost') say(connectionWords.lost);
  if (state === 'live' && connection === 'lost') say('Connected again.');
  if (state === connection) return;
  connection = state;
  show();
}

/** @param {string} words */
function say(words) {
  const said = /** @type {HTMLElement} */ (document.querySelector('#said'));
  said.textContent = words;
}

let shownPath = '';

/** Shows the page of the address, unless it is shown already: an address can also name a place on it. */
async function navigate() {
  const { pathname, search } = location;
  if (shownPath === pathname) return;
  const isFirst = shownPath === '';
  shownPath = pathname;
  leaveQuestion(); // it is about the page that is left
  const open = await loadPage(pathname);
  if (shownPath !== pathname) return; // somebody was faster
  page?.close();
  connection = '';
  page = open({ show, go, connection: setConnection, say, query: new URLSearchParams(search) });
  show();
  if (!isFirst) document.querySelector('main')?.focus();
}

/** @param {string} path */
function go(path) {
  history.pushState(null, '', path);
  navigate();
  scrollTo(0, 0);
}

/** A link to another page leads there without loading it. @param {MouseEvent} event */
function follow(event) {
  const link = /** @type {Element} */ (event.target).closest('a');
  const isPlain = event.button === 0 && !event.ctrlKey && !event.metaKey && !event.shiftKey && !event.altKey;
  const path = link?.getAttribute('href') ?? '';
  if (!isPlain || !path.startsWith('/') || path.startsWith('/api/')) return;
  event.preventDefault();
  go(path);
}

/** A page is loaded when it is needed. @param {string} path @returns {Promise<(surroundings: Surroundings) => Page>} */
async function loadPage(path) {
  const [, first = '', id = '', more] = path.split('/');
  if (first === 'runs' && id !== '' && more === undefined) {
    const { openRun } = await import('./run-page.js');
    return (surroundings) => openRun(decodeURIComponent(id), surroundings);
  }
  if (path === '/new' && mayOperate()) return (await import('./new-run.js')).openNewRun;
  return path === '/' ? (await import('./runs-page.js')).openRuns : openNothing;
}

try {
  const [person, words] = await Promise.all([get('/me'), get('/words')]);
  setMe({ ...person, ...words });
  addEventListener('popstate', navigate);
  document.addEventListener('click', follow);
  await navigate();
} catch (error) {
  render(alarm(wordsOf(error)), /** @type {HTMLElement} */ (document.querySelector('#page')));
}
