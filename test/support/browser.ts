import { existsSync } from 'node:fs';
import axe from 'axe-core';
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import { afterAll, beforeAll } from 'vitest';
import type { Role } from '../../src/model/role.ts';
import { type AtEnd, type Harness, type HarnessOptions, openHarness } from './harness.ts';
import { openOwnRedis } from './own-redis.ts';
import { type Running, until } from './processes.ts';

const places = [
  process.env.CHROMIUM ?? '',
  ...['chromium-headless-shell', 'chromium', 'chromium-browser', 'google-chrome'].map((name) => `/usr/bin/${name}`),
];

/** Why no test can look at the pages; null if one can. */
export const noBrowser = places.some((place) => existsSync(place))
  ? null
  : 'no Chromium was found; apt-get install chromium-headless-shell has one, or CHROMIUM names it';

function openBrowser(): Promise<Browser> {
  const executablePath = places.find((place) => existsSync(place))!;
  return chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-dev-shm-usage'] });
}

/** The browser of a suite: opened before its tests, and closed after them. Called where the suite is described. */
export function browserOfSuite(): () => Browser {
  let browser: Browser;
  beforeAll(async () => {
    browser = await openBrowser();
  });
  afterAll(() => browser.close());
  return () => browser;
}

/** A dashboard of its own: its Redis, a sandbox, and pages that are logged in. */
export type Dashboard = {
  readonly harness: Harness;
  readonly url: string;
  /** The process of its Redis. */
  readonly redisPid: number;
  /** What the browser complained about, on all pages: nothing is right. */
  readonly complaints: readonly string[];
  /** A page logged in with a new token of this role; null: nobody is logged in there. */
  page(role: Role | null, options?: BrowserContextOptions): Promise<Page>;
  /** A new token of this role. */
  token(role: Role): Promise<string>;
  /** A detached run of these ids; its id. */
  submit(ids: readonly string[], args?: string[]): Promise<string>;
  /** Ends the server. */
  stop(): Promise<void>;
  /** Starts it again at the same address. */
  start(): Promise<void>;
};

/** `isShipped`: the server is a process of its own, which serves the files of the build. */
export async function openDashboard(
  browser: Browser,
  atEnd: AtEnd,
  { isShipped = false, ...options }: HarnessOptions & { isShipped?: boolean } = {},
): Promise<Dashboard> {
  const redis = await openOwnRedis(atEnd);
  const harness = await openHarness(atEnd, options, redis);
  const complaints: string[] = [];
  let running: Running;
  let port = 0;
  const start = async () => {
    const words = ['dashboard', '--port', String(port), '--json'];
    running = isShipped ? harness.spawn(words) : harness.start(words);
    const told = await until('the dashboard listens', () => {
      if (running.isOver) throw new Error(running.stderr);
      return running.stdout.includes('\n') && running.stdout;
    });
    port = Number(new URL(JSON.parse(told).url).port);
  };
  await start();
  const url = `http://127.0.0.1:${port}`;
  let tokens = 0;
  const token: Dashboard['token'] = async (role) => {
    const { stdout } = await harness.expunge(['token', 'add', `tester-${++tokens}`, '--role', role]);
    return stdout.trim();
  };
  const page: Dashboard['page'] = async (role, more = {}) => {
    const context = await browser.newContext({ acceptDownloads: true, ...more });
    context.setDefaultTimeout(60_000);
    atEnd(() => context.close());
    const opened = await context.newPage();
    opened.on('console', (message) => {
      // A server that is gone is told by the page itself.
      const isExpected = /net::ERR_CONNECTION_REFUSED|net::ERR_INCOMPLETE_CHUNKED|status of 50\d/.test(message.text());
      if (['error', 'warning'].includes(message.type()) && !isExpected) complaints.push(message.text());
    });
    opened.on('pageerror', (error) => complaints.push(String(error.stack)));
    if (role !== null) await logIn(opened, url, await token(role));
    return opened;
  };
  return {
    harness,
    url,
    redisPid: redis.pid,
    complaints,
    page,
    token,
    start,
    submit: async (ids, args = []) => {
      const command = ['run', harness.list(ids), '--resource', 'annotations', '--yes', '--detach', '--json', ...args];
      const { code, stdout, stderr } = await harness.expunge(command);
      if (code !== 0) throw new Error(stderr);
      return JSON.parse(stdout.trim().split('\n').at(-1)!).run;
    },
    stop: async () => {
      running.signal('SIGTERM');
      await running.ended;
    },
  };
}

export async function logIn(page: Page, url: string, token: string): Promise<void> {
  await page.goto(`${url}/login`);
  await signIn(page, token);
}

/** The same on the login page as it is shown. */
export async function signIn(page: Page, token: string): Promise<void> {
  await page.getByLabel('Token').fill(token);
  await page.getByRole('button', { name: 'Sign in' }).click();
}

type Violation = { id: string; impact: string; nodes: { html: string }[] };

/** Waits until the page of a run shows this state. */
export function showsState(page: Page, state: string): Promise<void> {
  return page.locator('h1 .badge', { hasText: state }).waitFor();
}

/** What axe finds on a page that keeps some readers out. */
export async function barriersOn(page: Page): Promise<string[]> {
  await page.evaluate(axe.source);
  const { violations } = await page.evaluate<{ violations: Violation[] }>('axe.run()');
  const serious = violations.filter(({ impact }) => impact === 'serious' || impact === 'critical');
  return serious.map(({ id, nodes }) => `${id}: ${nodes[0]?.html}`);
}
