import { html, nothing, render } from '/assets/lit-html/lit-html.js';
import { get, wordsOf } from './api.ts';
import { leaveQuestion } from './ask.ts';
import { zone } from './format.ts';
import type { Connection } from './live.ts';
import type { Page, Surroundings } from './page.ts';
import { alarm, patterns } from './parts.ts';
import type { Person, Words } from './types.ts';
import { mayOperate, me, setMe } from './words.ts';

let page: Page | null = null;
let connection: Connection | '' = '';
let isDue = false;

const connectionWords: Record<Connection, string> = {
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
  render(layout(page), document.querySelector('#page') as HTMLElement);
  page?.drawn?.();
}

function layout(page: Page | null) {
  const path = location.pathname;
  const link = (to: string, name: string) =>
    html`<a href=${to} aria-current=${path === to ? 'page' : nothing}>${name}</a>`;
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

function openNothing(): Page {
  return {
    title: () => 'No such page',
    view: () =>
      html`<h1>No such page</h1><p>Nothing is at <code>${location.pathname}</code>. <a href="/">See all runs</a></p>`,
    close: () => {},
  };
}

function setConnection(state: Connection) {
  if (state === 'lost' && connection !== 'lost') say(connectionWords.lost);
  if (state === 'live' && connection === 'lost') say('Connected again.');
  if (state === connection) return;
  connection = state;
  show();
}

function say(words: string) {
  const said = document.querySelector('#said') as HTMLElement;
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

function go(path: string) {
  if (path !== location.pathname + location.search) history.pushState(null, '', path); // as browsers do for a second click
  navigate();
  scrollTo(0, 0);
}

/** A link to another page leads there without loading it. */
function follow(event: MouseEvent) {
  const link = (event.target as Element).closest('a');
  const isPlain = event.button === 0 && !event.ctrlKey && !event.metaKey && !event.shiftKey && !event.altKey;
  const path = link?.getAttribute('href') ?? '';
  if (!isPlain || !path.startsWith('/') || path.startsWith('/api/')) return;
  event.preventDefault();
  go(path);
}

/** A page is loaded when it is needed. */
async function loadPage(path: string): Promise<(surroundings: Surroundings) => Page> {
  const [, first = '', id = '', more] = path.split('/');
  if (first === 'runs' && id !== '' && more === undefined) {
    const { openRun } = await import('./run-page.ts');
    return (surroundings) => openRun(decodeURIComponent(id), surroundings);
  }
  if (path === '/new' && mayOperate()) return (await import('./new-run.ts')).openNewRun;
  return path === '/' ? (await import('./runs-page.ts')).openRuns : openNothing;
}

try {
  const [person, words] = await Promise.all([get<Person>('/me'), get<Words>('/words')]);
  setMe({ ...person, ...words });
  addEventListener('popstate', navigate);
  document.addEventListener('click', follow);
  await navigate();
} catch (error) {
  render(alarm(wordsOf(error)), document.querySelector('#page') as HTMLElement);
}
