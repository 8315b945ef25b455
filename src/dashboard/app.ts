import { get, toTrouble } from './api.ts';
import { leaveQuestion } from './ask.ts';
import { ConnectionState } from './connection.ts';
import { count, zone } from './format.ts';
import type { Connection } from './live.ts';
import { html, nothing, render, visible } from './markup.ts';
import type { Page, Surroundings } from './page.ts';
import { host, patterns } from './parts.ts';
import { openRun } from './run-page.ts';
import { openRuns } from './runs-page.ts';
import { noAnswer } from './trouble.ts';
import type { Person, Words } from './types.ts';
import { mayPlan, me, setMe } from './words.ts';

// The pages that show runs are loaded with the first one, so that they also open while the server is away.

let page: Page | null = null;
let isDue = false;
const connection = new ConnectionState(say);

function show() {
  if (isDue) return;
  isDue = true;
  requestAnimationFrame(() => {
    isDue = false;
    draw();
  });
}

function draw() {
  document.title = page ? visible(`${page.title()} · expunge`) : 'expunge';
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
      <nav aria-label="Pages">${link('/', 'Runs')}${mayPlan() ? link('/new', 'New run') : nothing}${link('/plans', 'Plans')}</nav>
      ${connection.badge()}
      ${me.name ? html`<form class="who" method="post" action="/logout"><div>${me.name} <small>${me.role}</small>${reach()}</div><button>Sign out</button></form>` : nothing}
    </header>
    ${connection.banner()}
    <main id="main" tabindex="-1" class=${connection.isOld ? 'old' : ''}>${page ? page.view() : html`<p>Loading …</p>`}</main>
    <footer>${zone() === 'UTC' ? 'Times are in UTC.' : `Times are in ${zone()}; point at one to read it in UTC.`}</footer>`;
}

/** The targets that the token is bound to; nothing if it reaches all. */
function reach() {
  if (me.targets === null) return nothing;
  const places = me.targets.map(
    ({ target, account }) => html`<li>${host(target)}${account ? ` (${account})` : ''}</li>`,
  );
  const list = html`<ul aria-label="Targets of your token">${places}</ul>`;
  return places.length > 2
    ? html`<details class="reach"><summary>only ${count(places.length)} targets</summary>${list}</details>`
    : html`<div class="reach">only ${list}</div>`;
}

/** A page that only shows a text. */
function openWords(title: string, words: () => ReturnType<Page['view']>) {
  return (): Page => ({
    title: () => title,
    view: () => html`<h1>${title}</h1><p>${words()} <a href="/">See all runs</a></p>`,
    close: () => {},
  });
}

const openNothing = openWords('No such page', () => html`Nothing is at <code>${location.pathname}</code>.`);

const openForbidden = openWords(
  'Not allowed',
  () => html`Your token may only read. To delete a list, sign in with a token of the role <b>operate</b>, or <b>plan</b> to have it approved;
    whoever gave you yours can make one.`,
);

function setConnection(state: Connection) {
  connection.set(state);
  show();
}

function say(words: string) {
  const said = document.querySelector('#said') as HTMLElement;
  said.textContent = visible(words);
}

/** The address of the current page. */
let shown = '';

function addressNow() {
  return location.pathname + location.search;
}

/** Shows the page of the address, unless it is already shown: an address can also name a place in it. */
function navigate() {
  if (shown === addressNow()) return;
  const isFirst = shown === '';
  shown = addressNow();
  leaveQuestion(); // the question belongs to the page that is left
  page?.close();
  connection.reset();
  page = pageAt(location.pathname)({
    show,
    go,
    rename,
    connection: setConnection,
    asOf: () => connection.asOf(),
    say,
    query: new URLSearchParams(location.search),
  });
  show();
  if (!isFirst) document.querySelector('main')?.focus();
}

function go(path: string) {
  if (path !== addressNow()) history.pushState(null, '', path); // as browsers do for a second click
  navigate();
  scrollTo(0, 0);
}

function rename(path: string) {
  history.replaceState(null, '', path);
  shown = addressNow();
}

/** Opens a link to another page without loading that page from the server. */
function follow(event: MouseEvent) {
  const link = (event.target as Element).closest('a');
  const isPlain = event.button === 0 && !event.ctrlKey && !event.metaKey && !event.shiftKey && !event.altKey;
  const path = link?.getAttribute('href') ?? '';
  if (!isPlain || !path.startsWith('/') || path.startsWith('/api/')) return;
  event.preventDefault();
  go(path);
}

function pageAt(path: string): (surroundings: Surroundings) => Page {
  const [, first = '', id = '', more] = path.split('/');
  const run = first === 'runs' && more === undefined ? decoded(id) : '';
  if (run !== '') return (surroundings) => openRun(run, surroundings);
  const plan = first === 'plans' && more === undefined ? decoded(id) : '';
  if (plan !== '' || path === '/plans')
    return openLater('Plans', async (surroundings) => (await import('./plans-page.ts')).openPlans(plan, surroundings));
  if (path === '/new') return mayPlan() ? openNew : openForbidden;
  return path === '/' ? openRuns : openNothing;
}

const openNew = openLater('New run', async (surroundings) => (await import('./new-run.ts')).openNewRun(surroundings));

/** A page whose code is loaded when it is opened, because it is useless without its server. */
function openLater(title: string, open: (surroundings: Surroundings) => Promise<Page>) {
  return (surroundings: Surroundings): Page => {
    let opened: Page | null = null;
    let timer = 0;
    let isOver = false;
    const load = async () => {
      try {
        opened = await open(surroundings);
        if (isOver) opened.close();
      } catch {
        if (isOver) return;
        surroundings.connection(noAnswer);
        timer = window.setTimeout(reload, retryMs);
      }
      if (!isOver) show();
    };
    // Browsers do not repeat an import that failed, so the whole page is loaded again once its server answers.
    const reload = () =>
      get('/me').then(
        () => isOver || location.reload(),
        () => {
          if (!isOver) timer = window.setTimeout(reload, retryMs);
        },
      );
    load();
    return {
      title: () => opened?.title() ?? title,
      view: () => opened?.view() ?? html`<h1>${title}</h1><p>Loading …</p>`,
      close: () => {
        isOver = true;
        clearTimeout(timer);
        opened?.close();
      },
    };
  };
}

/** The decoded part of a path; '' if it cannot be decoded. */
function decoded(part: string) {
  try {
    return decodeURIComponent(part);
  } catch {
    return '';
  }
}

const retryMs = 2_000;

async function start() {
  try {
    const [person, words] = await Promise.all([get<Person>('/me'), get<Words>('/words')]);
    setMe({ ...person, ...words });
  } catch (error) {
    setConnection(toTrouble(error));
    setTimeout(start, retryMs);
    return;
  }
  addEventListener('popstate', navigate);
  document.addEventListener('click', follow);
  navigate();
}

start();
