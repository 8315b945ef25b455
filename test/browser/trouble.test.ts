import type { Page } from 'playwright-core';
import { describe, test } from 'vitest';
import { parseHost } from '../../src/dashboard/format.ts';
import { keys } from '../../src/redis/keys.ts';
import { barriersOn, browserOfSuite, logIn, noBrowser, openDashboard, signIn } from '../support/browser.ts';
import { annotations, makeIds } from '../support/ids.ts';

const ids = makeIds('t', 400);
const objects = annotations(ids);

/** What says how a page is connected. */
function connectionOf(page: Page) {
  return { badge: page.locator('.connection'), trouble: page.locator('.trouble'), old: page.locator('main.old') };
}

describe.skipIf(noBrowser !== null)('the pages', () => {
  const browser = browserOfSuite();

  test('say since when Redis is away and of which time their numbers are, and go on by themselves', async ({
    expect,
    onTestFinished,
  }) => {
    const dashboard = await openDashboard(browser(), onTestFinished, { objects });
    const run = await dashboard.submit(ids, ['--rate', '20/s']);
    await dashboard.harness.spawnWorker();
    const page = await dashboard.page('read');
    const { badge, trouble, old } = connectionOf(page);
    for (const path of ['/', `/runs/${run}`]) {
      await page.goto(dashboard.url + path);
      await page.locator('.pace', { hasText: '/s' }).first().waitFor();
      process.kill(dashboard.redisPid, 'SIGSTOP');
      await badge.getByText(/^As of \d\d:\d\d:\d\d/).waitFor();
      await trouble.getByText(/^Redis does not answer since \d\d:\d\d:\d\d/).waitFor();
      await trouble.getByText('Runs continue by themselves once Redis is back').waitFor();
      await old.waitFor();
      expect(await page.locator('.pace', { hasText: '/s' }).count()).toBe(0); // nobody knows that now
      expect(await barriersOn(page)).toEqual([]);
      process.kill(dashboard.redisPid, 'SIGCONT');
      await badge.getByText('Live').waitFor();
      expect(await trouble.count()).toBe(0);
      expect(await old.count()).toBe(0);
    }
    expect(dashboard.complaints).toEqual([]);
  });

  test('lead to each other while their server is away, and show what is there once it is back', async ({
    expect,
    onTestFinished,
  }) => {
    const dashboard = await openDashboard(browser(), onTestFinished, { objects });
    const run = await dashboard.submit(ids);
    const page = await dashboard.page('operate');
    const { badge, trouble } = connectionOf(page);
    await page.getByRole('link', { name: run }).waitFor();
    await badge.getByText('Live').waitFor();
    await dashboard.stop();
    await trouble.getByText('The server does not answer since').waitFor();
    await page.getByRole('link', { name: run }).click();
    await page.getByRole('heading', { level: 1, name: `Run ${run}` }).waitFor();
    await badge.getByText('Not connected').waitFor();
    await page.getByRole('link', { name: 'New run' }).click();
    await trouble.getByText('The server does not answer since').waitFor();
    await dashboard.start();
    await page.getByRole('button', { name: 'Show the plan' }).waitFor();
    await dashboard.stop();
    await page.getByRole('link', { name: 'Runs' }).click();
    await badge.getByText('Not connected').waitFor();
    await page.goBack();
    await page.goBack();
    await page.getByRole('heading', { level: 1, name: `Run ${run}` }).waitFor();
    await dashboard.start();
    await badge.getByText('Live').waitFor();
    await page.getByText('Who did what').waitFor();
    expect(dashboard.complaints).toEqual([]);
  });

  test('tell a fault of the server from one of a proxy, also when they are opened, and go on', async ({
    expect,
    onTestFinished,
  }) => {
    const dashboard = await openDashboard(browser(), onTestFinished, { objects });
    const page = await dashboard.page('read');
    const { badge, trouble } = connectionOf(page);
    await badge.getByText('Live').waitFor();
    const internal = { title: 'internal error', status: 500, detail: 'it is in the log of the server' };
    for (const [status, body, words] of [
      [502, '<h1>Bad Gateway</h1>', 'A proxy answers 502 in place of the server since'],
      [500, JSON.stringify(internal), 'The server has a fault since'],
    ] as const) {
      await page.route(/\/api\/v1\//, (route) => route.fulfill({ status, body }));
      await page.reload();
      await trouble.getByText(words).waitFor();
      await page.unroute(/\/api\/v1\//);
      await badge.getByText('Live').waitFor();
      await page.getByRole('heading', { level: 1, name: 'Runs' }).waitFor();
    }
    expect(dashboard.complaints).toEqual([]);
  });

  test('that cannot be opened while Redis hangs are there by themselves once it is back', async ({
    expect,
    onTestFinished,
  }) => {
    const dashboard = await openDashboard(browser(), onTestFinished, { objects });
    const page = await dashboard.page('read');
    await page.getByRole('heading', { level: 1, name: 'Runs' }).waitFor();
    process.kill(dashboard.redisPid, 'SIGSTOP');
    await page.goto(dashboard.url);
    await page.getByText(/^Redis/).waitFor();
    await page.getByText('This page tries again every 5 seconds').waitFor();
    process.kill(dashboard.redisPid, 'SIGCONT');
    await page.getByRole('heading', { level: 1, name: 'Runs' }).waitFor();
    expect(dashboard.complaints).toEqual([]);
  });

  test('of a session that has ended say so, and are where they were after the login', async ({
    expect,
    onTestFinished,
  }) => {
    const dashboard = await openDashboard(browser(), onTestFinished, { objects });
    const { redis } = dashboard.harness;
    const run = await dashboard.submit(ids);
    const page = await dashboard.page('operate');
    await page.getByRole('link', { name: run }).click();
    await connectionOf(page).badge.getByText('Live').waitFor();
    const end = async () => redis.del(...(await redis.keys(keys.apiSession('*'))));
    await page.getByRole('button', { name: 'Pause …' }).click();
    await page.getByRole('dialog').getByLabel('Reason').fill('a long reason');
    await end();
    await page.waitForURL(/\/login/);
    await page.getByText('Your session has ended').waitFor();
    await signIn(page, 'a-guess');
    await page.getByText('This token is not known').waitFor();
    await signIn(page, await dashboard.token('read'));
    await page.waitForURL(`${dashboard.url}/runs/${run}`);
    await page.getByRole('heading', { level: 1, name: `Run ${run}` }).waitFor();
    expect((await dashboard.harness.onlyRun()).state).toBe('running');
    expect(dashboard.complaints.filter((words) => !words.includes('401'))).toEqual([]);
  });

  test('say whose token it is, and which targets it reaches', async ({ expect, onTestFinished }) => {
    const dashboard = await openDashboard(browser(), onTestFinished, { objects });
    const { harness, url } = dashboard;
    const others = ['https://a.example.com/v2', 'https://b.example.com'];
    const place = (address: string) => `${parseHost(address)} (${harness.target.account})`;
    const pageOf = async (name: string, targets: string[]) => {
      const bound = targets.length > 0 ? ['--target', targets.join(), '--account', harness.target.account] : [];
      const { stdout } = await harness.expunge(['token', 'add', name, '--role', 'operate', ...bound]);
      const page = await dashboard.page(null);
      await logIn(page, url, stdout.trim());
      await page.getByText(`${name} operate`).waitFor();
      return page;
    };
    const targetsOn = (page: Page) => page.getByRole('list', { name: 'Targets of your token' }).getByRole('listitem');
    const free = await pageOf('free', []);
    expect(await targetsOn(free).count()).toBe(0);
    const one = await pageOf('one', [harness.target.baseUrl]);
    expect(await targetsOn(one).allInnerTexts()).toEqual([place(harness.target.baseUrl)]);
    const three = await pageOf('three', [harness.target.baseUrl, ...others]);
    await three.getByText('only 3 targets').click();
    expect((await targetsOn(three).allInnerTexts()).sort()).toEqual(
      [harness.target.baseUrl, ...others].map(place).sort(),
    );
    for (const page of [one, three]) {
      await page.setViewportSize({ width: 390, height: 844 });
      expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true);
      expect(await barriersOn(page)).toEqual([]);
    }
    expect(dashboard.complaints).toEqual([]);
  });

  test('say what a reader may not do, and of addresses that lead nowhere', async ({ expect, onTestFinished }) => {
    const dashboard = await openDashboard(browser(), onTestFinished, { objects });
    const page = await dashboard.page('read');
    for (const [path, heading, words] of [
      ['/new', 'Not allowed', 'Your token may only read'],
      ['/runs/%E0%A4%A', 'No such page', 'Nothing is at /runs/%E0%A4%A'],
      ['/runs/a%3Fb%2F', 'No such run', 'No run is called a?b/'],
      ['/runs/', 'No such page', 'Nothing is at /runs/'],
    ] as const) {
      await page.goto(dashboard.url + path);
      await page.getByRole('heading', { level: 1, name: heading }).waitFor();
      await page.getByText(words).waitFor();
      await page.getByRole('link', { name: 'See all runs' }).waitFor();
    }
    expect(dashboard.complaints.filter((words) => !words.includes('404'))).toEqual([]);
  });
});
