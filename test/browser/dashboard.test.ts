import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Page } from 'playwright-core';
import { describe, test } from 'vitest';
import { parseHost } from '../../src/dashboard/format.ts';
import { noteFailedAction } from '../../src/ledger/audit.ts';
import { noteTarget } from '../../src/ledger/known-targets.ts';
import { targetOf } from '../../src/model/target.ts';
import {
  barriersOn,
  browserOfSuite,
  type Dashboard,
  logIn,
  noBrowser,
  openDashboard,
  showsState,
  signIn,
} from '../support/browser.ts';
import { annotations, makeIds } from '../support/ids.ts';
import { writeManyRuns } from '../support/many-runs.ts';
import { until } from '../support/processes.ts';

if (noBrowser !== null) console.log(`The pages of the dashboard are not tested: ${noBrowser}.`);

const ids = makeIds('d', 1_200);
const objects = annotations(ids);

/** The page of a run, with its state. */
async function openRun(page: Page, { url }: Dashboard, run: string, state: string): Promise<void> {
  await page.goto(`${url}/runs/${run}`);
  await showsState(page, state);
}

/** How many bytes a page has loaded beside what the API answered, before any compression. */
async function weightOf(page: Page): Promise<number> {
  const loaded = `performance.getEntriesByType('resource').map(({ name, decodedBodySize }) => [name, decodedBodySize])`;
  const all: [name: string, bytes: number][] = await page.evaluate(loaded);
  const assets = all.filter(([name]) => new URL(name).pathname.startsWith('/assets/'));
  return assets.reduce((sum, [, bytes]) => sum + bytes, 0);
}

/** How long the parts of a bar of progress take to move. */
function transitionOf(page: Page): Promise<string> {
  return page.evaluate(`(() => {
    document.body.insertAdjacentHTML('beforeend', '<svg class="bar"><rect/></svg>');
    const bar = document.body.lastElementChild;
    const { transitionDuration } = getComputedStyle(bar.firstElementChild);
    bar.remove();
    return transitionDuration;
  })()`);
}

/** Takes an action on the page of a run: opens its dialog, fills its fields, and confirms. */
async function action(page: Page, name: string, label: string, fields: Record<string, string>): Promise<void> {
  await page.getByRole('button', { name: `${name} …`, exact: true }).click();
  const dialog = page.getByRole('dialog');
  for (const [label, value] of Object.entries(fields)) await dialog.getByRole('textbox', { name: label }).fill(value);
  await dialog.getByRole('button', { name: label, exact: true }).click();
}

/** A list of ids, as somebody chooses it. */
function listFile(name: string, list: readonly string[]) {
  return { name, mimeType: 'text/csv', buffer: Buffer.from(`${['id', ...list].join('\n')}\n`) };
}

/** Two clicks before the page is drawn again. */
function clickTwice(element: { click(): void }): void {
  element.click();
  element.click();
}

describe.skipIf(noBrowser !== null)('the dashboard', () => {
  const browser = browserOfSuite();

  test('shows a run to its end, why ids failed, and hands out their rows', async ({ expect, onTestFinished }) => {
    const refused = new Set(ids.filter((_, n) => n % 100 === 3));
    const script = (_: string, id: string) => (refused.has(id) ? ('status-400' as const) : null);
    const dashboard = await openDashboard(browser(), onTestFinished, { objects, faults: { script }, isShipped: true });
    const run = await dashboard.submit(ids, ['--rate', '600/s', '--reason', 'closed accounts']);
    const page = await dashboard.page('operate');
    await page.getByRole('link', { name: run }).click();
    await showsState(page, 'running');
    await dashboard.harness.worker();
    await showsState(page, 'completed');
    await page.getByText('100 %').waitFor();
    await page.getByRole('link', { name: `${refused.size} rows without success` }).waitFor();
    await page.getByText(`deleted ${(ids.length - refused.size).toLocaleString('en-US')}`).waitFor();
    const group = page.locator('details.group', { hasText: 'failed' });
    await group.locator('summary').click();
    await group.getByText(ids[3]!, { exact: true }).waitFor();
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      group.getByRole('link', { name: 'CSV' }).click(),
    ]);
    const rows = readFileSync(await download.path(), 'utf8')
      .trim()
      .split('\n')
      .slice(1);
    expect(rows).toHaveLength(refused.size);
    await page.locator('canvas').first().waitFor();
    const weight = await weightOf(page);
    console.log(`The pages of runs and of one run load ${weight} bytes.`);
    expect(weight).toBeLessThan(150_000);
    expect(await barriersOn(page)).toEqual([]);
    const number = String(refused.size);
    await action(page, 'Retry', 'Make the run', { Reason: 'once more', 'Type the number': number });
    await page.getByRole('link', { name: run }).waitFor(); // that it retries
    await showsState(page, 'completed');
    await page.getByRole('link', { name: 'Runs' }).click();
    await page.getByRole('row', { name: /closed accounts/ }).waitFor();
    expect(await barriersOn(page)).toEqual([]);
    expect(dashboard.complaints).toEqual([]);
  });

  test('says in words that the server throttles, and for how long', async ({ expect, onTestFinished }) => {
    const rate = { perSecond: 50, windowMs: 2_000, retryAfter: 'seconds', retryAfterSeconds: 3 } as const;
    const dashboard = await openDashboard(browser(), onTestFinished, { objects, faults: { rate } });
    const run = await dashboard.submit(ids);
    const page = await dashboard.page('read');
    await openRun(page, dashboard, run, 'running');
    await dashboard.harness.worker();
    await page
      .locator('.now', {
        hasText: /^The server answered 429 and sent Retry-After 3 until \d\d:\d\d:\d\d\. An operator can end that\./,
      })
      .waitFor();
    await page.locator('.events', { hasText: 'waiting: the server answered 429 and sent Retry-After 3' }).waitFor();
    expect(dashboard.complaints).toEqual([]);
  });

  test('pauses a run, so that nothing is sent, lets it go on, and cancels it', async ({ expect, onTestFinished }) => {
    const dashboard = await openDashboard(browser(), onTestFinished, { objects });
    const { harness } = dashboard;
    const run = await dashboard.submit(ids, ['--rate', '50/s']);
    const page = await dashboard.page('operate');
    await openRun(page, dashboard, run, 'running');
    await harness.worker();
    await until('requests arrive', () => harness.arrivals.length > 10);

    await action(page, 'Pause', 'Pause', { Reason: 'release window' });
    await showsState(page, 'paused');
    await sleep(1_000); // the promise: nothing leaves a second later
    const sent = harness.arrivals.length;
    await sleep(500);
    expect(harness.arrivals).toHaveLength(sent);
    await page.getByText(/^Paused by .*: release window, since [\d:]+\. Resume ends that\.$/).waitFor();

    await page.getByRole('button', { name: 'Resume …' }).focus();
    for (const key of ['Enter', ...'it is over', 'Enter']) await page.keyboard.press(key === ' ' ? 'Space' : key);
    await showsState(page, 'running');
    await until('requests arrive again', () => harness.arrivals.length > sent);

    await action(page, 'Rate', 'Change the rate', { 'At most': 'fast', Reason: 'they asked us to' });
    await page
      .getByRole('dialog')
      .getByText(/^expected a rate like 200\/s/)
      .waitFor();
    await page.getByRole('button', { name: 'Leave it' }).click();
    await action(page, 'Rate', 'Change the rate', { 'At most': '40/s', Reason: 'they asked us to' });
    await page.getByText('at most 40/s').waitFor();

    await action(page, 'Pause', 'Pause', { Reason: 'to count' });
    await showsState(page, 'paused');
    await page.getByRole('button', { name: 'Cancel …' }).click();
    const dialog = page.getByRole('dialog');
    const left = (await dialog.locator('b').first().innerText()).replace(' ids', '');
    await dialog.getByLabel('Reason').fill('the wrong list');
    await dialog.getByLabel('Type the number').fill('1');
    await dialog.getByRole('button', { name: 'Cancel the run' }).click();
    expect((await harness.onlyRun()).state).toBe('paused'); // another number is not taken
    await dialog.getByLabel('Type the number').fill(left);
    await dialog.getByRole('button', { name: 'Cancel the run' }).click();
    await showsState(page, 'cancelled');
    for (const reason of ['release window', 'it is over', 'the wrong list'])
      await page.getByRole('cell', { name: reason, exact: true }).first().waitFor();
    expect(dashboard.complaints.filter((words) => !words.includes('status of 400'))).toEqual([]);
  });

  test('asks nothing about a run whose page was left, and says that an action on its way was refused', async ({
    expect,
    onTestFinished,
  }) => {
    const dashboard = await openDashboard(browser(), onTestFinished, { objects });
    const run = await dashboard.submit(ids);
    const page = await dashboard.page('operate');
    const dialog = page.getByRole('dialog');
    await page.getByRole('link', { name: run }).click();
    await page.getByRole('button', { name: 'Cancel …' }).click();
    await dialog.getByRole('heading', { name: run }).waitFor();
    await page.goBack();
    await page.getByRole('heading', { level: 1, name: 'Runs' }).waitFor();
    expect(await dialog.count()).toBe(0);

    await page.goForward();
    let release = () => {};
    const isReleased = new Promise<void>((resolve) => {
      release = resolve;
    });
    await page.route(/\/pause$/, (route) => isReleased.then(() => route.abort()));
    await action(page, 'Pause', 'Pause', { Reason: 'wait' });
    await page.goBack();
    await page.getByRole('heading', { level: 1, name: 'Runs' }).waitFor();
    expect(await dialog.count()).toBe(0);
    release();
    await dialog.getByRole('alert').getByText('The server did not answer').waitFor();
    await dialog.getByRole('button', { name: 'Close' }).click();
  });

  test('says that an action failed after its dialog had closed, until another one is done', async ({
    expect,
    onTestFinished,
  }) => {
    const dashboard = await openDashboard(browser(), onTestFinished, { objects });
    const run = await dashboard.submit(ids, ['--rate', '50/s']);
    const page = await dashboard.page('operate');
    await openRun(page, dashboard, run, 'running');
    const failed = {
      at: Date.now(),
      who: 'ana',
      reason: 'too early',
      failedAction: 'pause',
      error: 'Redis: no answer',
    };
    await noteFailedAction(dashboard.harness.redis, run, failed);
    await page.getByRole('alert').getByText('ana asked to pause the run, and it was not done').waitFor();
    await action(page, 'Pause', 'Pause', { Reason: 'again' });
    await showsState(page, 'paused');
    expect(await page.getByRole('alert').count()).toBe(0);
    expect(dashboard.complaints).toEqual([]);
  });

  test('tells what a command would warn of, and why a schedule is not run from here', async ({
    expect,
    onTestFinished,
  }) => {
    const dashboard = await openDashboard(browser(), onTestFinished, { objects });
    const { harness } = dashboard;
    const nightly = [
      'nightly',
      '--cron',
      '0 3 * * *',
      '--from',
      'expired',
      '--max-deletes',
      '5',
      '--resource',
      'views',
    ];
    await harness.expunge(['schedule', 'add', ...nightly]);
    const run = await dashboard.submit(ids);
    const page = await dashboard.page('operate');
    await openRun(page, dashboard, run, 'running');
    await action(page, 'Pause', 'Pause', { Reason: 'wait' });
    await showsState(page, 'paused');
    const stopped = await harness.expunge(['stop-all', '--reason', 'wrong list']);
    expect(stopped.code, stopped.stderr).toBe(0);
    await action(page, 'Resume', 'Resume', { Reason: 'go on' });
    const warned = page.getByRole('dialog');
    await warned
      .getByRole('alert')
      .getByText('the run does not continue yet. Stopped for all runs of this target by ')
      .waitFor({ timeout: 15_000 });
    await warned.getByRole('button', { name: 'Close' }).click();
    await page.getByRole('link', { name: 'Runs' }).click();
    const runNow = page.getByRole('button', { name: 'Run now …' });
    await runNow.waitFor();
    expect(await runNow.isDisabled()).toBe(true);
    expect(await runNow.getAttribute('title')).toContain('workers of its target');
    expect(dashboard.complaints).toEqual([]);
  });

  test('makes a run of a list: its plan, the typed number, its end', async ({ expect, onTestFinished }) => {
    const dashboard = await openDashboard(browser(), onTestFinished, { objects });
    const { harness } = dashboard;
    await harness.worker();
    const page = await dashboard.page('operate');
    await page.getByRole('link', { name: 'New run' }).click();
    const list = ['id', ...ids.slice(0, 40), ids[0], 'a/7', ''].join('\n');
    await page
      .getByLabel('List of ids')
      .setInputFiles({ name: 'old.csv', mimeType: 'text/csv', buffer: Buffer.from(list) });
    await page.getByRole('button', { name: 'Show the plan' }).click();
    await page.getByText(`DELETE ${harness.sandbox.url}/v2/annotations/${ids[0]}`).waitFor();
    await page.getByRole('row', { name: '43 a/7 unsafe_character' }).waitFor();
    expect(await barriersOn(page)).toEqual([]);
    expect(harness.arrivals).toHaveLength(0);
    await page.getByLabel('Type the number').fill('40');
    await page.getByLabel('Reason').fill('ticket 4711');
    await page.getByRole('button', { name: `Delete 40 annotations at ${parseHost(harness.target.baseUrl)}` }).click();
    await showsState(page, 'completed');
    expect(harness.arrivals).toHaveLength(40);
    expect((await harness.onlyRun()).note).toBe('ticket 4711');
    expect(dashboard.complaints).toEqual([]);
  });

  test('drops a plan with every change of its form, and names on its button what is deleted where', async ({
    expect,
    onTestFinished,
  }) => {
    const dashboard = await openDashboard(browser(), onTestFinished, { objects });
    const { harness } = dashboard;
    const other = targetOf('https://b.example', '');
    for (const target of [harness.target, other]) await noteTarget(harness.redis, target, Date.now());
    const page = await dashboard.page('operate');
    await page.getByRole('link', { name: 'New run' }).click();
    await page.getByLabel('List of ids').setInputFiles(listFile('old.csv', ids.slice(0, 3)));
    await page.getByLabel('Target').selectOption(harness.target.fp);
    const show = async (button: string) => {
      await page.getByRole('button', { name: 'Show the plan' }).click();
      await page.getByRole('button', { name: button, exact: true }).waitFor();
    };
    const changes: [change: () => Promise<unknown>, button: string][] = [
      [() => page.getByLabel('Target').selectOption(other.fp), 'Delete 3 annotations at b.example'],
      [() => page.getByLabel('Ids of').selectOption('views'), 'Delete 3 views at b.example'],
      [() => page.getByText('More settings').click(), ''],
      [() => page.getByLabel('Limit', { exact: true }).fill('2'), 'Delete 2 views at b.example'],
      [() => page.getByLabel('Rate').pressSequentially('5'), ''],
    ];
    await show(`Delete 3 annotations at ${parseHost(harness.target.baseUrl)} (${harness.target.account})`);
    for (const [change, button] of changes) {
      await page.getByLabel('Type the number').fill('3');
      await change();
      if (button === '') continue;
      await page.locator('#plan').waitFor({ state: 'detached' });
      await show(button);
    }
    await page.locator('#plan').waitFor({ state: 'detached' });
    expect(harness.arrivals).toEqual([]);
    expect(dashboard.complaints).toEqual([]);
  });

  test('makes one run and one entry of the history of a double click', async ({ expect, onTestFinished }) => {
    const dashboard = await openDashboard(browser(), onTestFinished, { objects });
    const { harness } = dashboard;
    await noteTarget(harness.redis, harness.target, Date.now());
    const page = await dashboard.page('operate');
    const entries = () => page.evaluate<number>('history.length');
    const posts: string[] = [];
    page.on('request', (request) => request.method() === 'POST' && posts.push(new URL(request.url()).pathname));
    const before = await entries();
    await page.getByRole('link', { name: 'New run' }).evaluate(clickTwice);
    await page.getByLabel('List of ids').setInputFiles(listFile('old.csv', ids.slice(0, 3)));
    expect(await entries()).toBe(before + 1);
    await page.getByRole('button', { name: 'Show the plan' }).evaluate(clickTwice);
    await page.getByLabel('Type the number').fill('3');
    await page.getByLabel('Reason').fill('once');
    await page.getByRole('button', { name: /^Delete 3/ }).evaluate(clickTwice);
    await showsState(page, 'running');
    await page.getByText('because').waitFor();
    expect(await entries()).toBe(before + 2);
    expect(posts.map((path) => path.replace(/[0-9a-f]{16}-[0-9a-f]{8}/, 'PLAN'))).toEqual([
      '/api/v1/plans',
      '/api/v1/plans/PLAN/apply',
    ]);
    expect(dashboard.complaints).toEqual([]);
  });

  test('shows no plan of a form that was changed meanwhile', async ({ expect, onTestFinished }) => {
    const dashboard = await openDashboard(browser(), onTestFinished, { objects });
    const { harness } = dashboard;
    await noteTarget(harness.redis, harness.target, Date.now());
    const page = await dashboard.page('operate');
    await page.getByRole('link', { name: 'New run' }).click();
    const choose = (name: string, list: readonly string[]) =>
      page.getByLabel('List of ids').setInputFiles(listFile(name, list));
    const show = () => page.getByRole('button', { name: 'Show the plan' }).click();
    const held: (() => void)[] = [];
    await page.route(/\/api\/v1\/plans\?/, async (route) => {
      await new Promise<void>((resolve) => held.push(resolve));
      await route.continue();
    });
    const release = async () => (await until('the list is sent', () => held.shift()))();
    const changes = [
      () => choose('second.csv', ids.slice(3, 5)),
      () => page.getByLabel('Ids of').selectOption('views'),
      () => page.getByLabel('Ids of').selectOption('annotations'),
    ];
    await choose('first.csv', ids.slice(0, 3));
    for (const change of changes) {
      await show();
      await page.getByText(/^Reading \w+\.csv …/).waitFor();
      await change();
      await release();
      await page.getByText('Nothing is sent yet.').waitFor();
      expect(await page.locator('#plan').count()).toBe(0);
    }
    await show();
    await release();
    await page.getByText(`DELETE ${harness.sandbox.url}/v2/annotations/${ids[3]}`).waitFor();
    expect(await page.locator('#plan dl').innerText()).toMatch(/^list\s+second\s+target/i);
    expect(dashboard.complaints).toEqual([]);
  });

  test('lets nobody in without a token, also without script, and refuses actions of people who may only read', async ({
    expect,
    onTestFinished,
  }) => {
    const dashboard = await openDashboard(browser(), onTestFinished, { objects });
    const run = await dashboard.submit(ids);
    const stranger = await dashboard.page(null, { javaScriptEnabled: false });
    await stranger.goto(`${dashboard.url}/runs/${run}`);
    expect(new URL(stranger.url()).pathname).toBe('/login');
    await signIn(stranger, 'a-guess');
    expect(new URL(stranger.url()).pathname).toBe('/login');
    await stranger.getByText('This token is not known').waitFor();
    expect(await stranger.getByRole('alert').count()).toBe(1); // and nothing else went wrong
    await signIn(stranger, await dashboard.token('read'));
    await stranger.waitForURL(`${dashboard.url}/runs/${run}`); // the page that was asked for

    const guess = await dashboard.page(null);
    await logIn(guess, dashboard.url, 'a-guess');
    await guess.getByText('This token is not known').waitFor();
    await guess.locator('#token:focus').waitFor(); // ready for another try
    expect(await barriersOn(guess)).toEqual([]);

    const reader = await dashboard.page('read');
    await openRun(reader, dashboard, run, 'running');
    expect(await reader.getByRole('button', { name: 'Pause …' }).isDisabled()).toBe(true);
    expect(await reader.getByRole('link', { name: 'New run' }).count()).toBe(0);
    expect(dashboard.complaints).toEqual([]);
    const request = `{ method: 'POST', headers: { 'content-type': 'application/json' }, body: '{"reason":"x"}' }`;
    const refused = await reader.evaluate(
      `fetch('/api/v1/runs/${run}/pause', ${request}).then(({ status }) => status)`,
    );
    expect(refused).toBe(403);
    expect((await dashboard.harness.onlyRun()).state).toBe('running');
  });

  test('says why a running run does not move, and which workers are at work', async ({ expect, onTestFinished }) => {
    const dashboard = await openDashboard(browser(), onTestFinished, { objects });
    const page = await dashboard.page('operate');
    await page.getByText('No run is active').waitFor();
    await page.getByText('Detached runs and schedules need one: expunge worker').waitFor();
    const run = await dashboard.submit(ids, ['--rate', '50/s']);
    const card = page.getByRole('article', { name: run });
    await card.getByText('No worker of this target is alive').waitFor();
    await card.getByText('expunge worker --base-url').waitFor();
    await card.locator('.badge', { hasText: 'running · no worker' }).waitFor();
    await dashboard.harness.worker();
    await page
      .getByRole('row', { name: new RegExp(`^${hostname()}-.* at work, up to \\d+ requests at once`) })
      .waitFor();
    await card.getByText(/^[\d.]+\/s, .* left, ends /).waitFor();
    await action(page, 'Stop', 'Stop', { Reason: 'the database is full' });
    await card.getByText(/^Stopped for all runs of this target by .*: the database is full/).waitFor();
    expect(await page.title()).toBe('1 active run · expunge');
    expect(await barriersOn(page)).toEqual([]);
    expect(dashboard.complaints).toEqual([]);
  });

  test('fits on a phone, moves nothing for who wants that, and says so where nothing is', async ({
    expect,
    onTestFinished,
  }) => {
    const dashboard = await openDashboard(browser(), onTestFinished, { objects });
    const run = await dashboard.submit(ids, ['--reason', `see ticket ${'4711'.repeat(30)}`]);
    await writeManyRuns(dashboard.harness.redis, 60, 'completed');
    const ended = await dashboard.submit(ids.slice(0, 9), [
      '--reason',
      'closed accounts of the third quarter, see ticket 4712',
    ]);
    await dashboard.harness.expunge(['cancel', ended, '--yes', '--reason', 'the wrong list']);
    const phone = { viewport: { width: 390, height: 844 }, reducedMotion: 'reduce', timezoneId: 'Asia/Tokyo' } as const;
    const page = await dashboard.page('operate', phone);
    await page.getByRole('table', { name: 'Ended runs' }).waitFor();
    await page.getByText('Times are in Asia/Tokyo, UTC+9').waitFor();
    for (const [path, heading, content] of [
      ['/', 'Runs', 'see ticket 4711'],
      [`/runs/${run}`, `Run ${run}`, 'Who did what'],
      ['/new', 'New run', 'Show the plan'],
      ['/nowhere', 'No such page', 'Nothing is at /nowhere'],
      ['/runs/none', 'No such run', 'No run is called none'],
    ] as const) {
      await page.goto(dashboard.url + path);
      await page.getByRole('heading', { level: 1, name: heading }).waitFor();
      await page.getByText(content).first().waitFor();
      expect([path, await page.evaluate('document.documentElement.scrollWidth <= innerWidth')]).toEqual([path, true]);
      expect(await page.title()).not.toBe('expunge');
    }
    for (const width of [390, 640]) {
      await page.setViewportSize({ width, height: 844 }); // 640: half of 1280, as at 200 %
      await page.goto(dashboard.url);
      const row = page.getByRole('table', { name: 'Ended runs' }).getByRole('row').nth(1);
      await row.waitFor();
      expect([width, (await row.boundingBox())!.height < 80]).toEqual([width, true]); // two lines
      const { x, width: wide } = (await row.getByRole('cell').last().boundingBox())!; // when it ended
      expect([width, x + wide <= width]).toEqual([width, true]);
      expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true);
    }
    expect(await transitionOf(page)).toBe('0s');
    await page.emulateMedia({ reducedMotion: 'no-preference' });
    expect(await transitionOf(page)).toBe('0.4s, 0.4s');
    await page.goto(`${dashboard.url}/nowhere`);
    await page.getByRole('link', { name: 'See all runs' }).click();
    await page.getByRole('link', { name: run }).waitFor();
  });

  test('lists ten thousand ended runs by pages of fifty, and finds one', async ({ expect, onTestFinished }) => {
    const dashboard = await openDashboard(browser(), onTestFinished);
    await writeManyRuns(dashboard.harness.redis, 10_000, 'completed');
    const page = await dashboard.page('read');
    const rows = page.getByRole('table', { name: 'Ended runs' }).locator('tbody tr');
    await page.getByRole('link', { name: '20260101-0000-09999' }).waitFor();
    expect(await rows.count()).toBe(50);
    await page.getByRole('button', { name: 'Older' }).click();
    await page.getByRole('link', { name: '20260101-0000-09949' }).waitFor();
    await page.getByRole('button', { name: 'Newer' }).click();
    await page.getByRole('link', { name: '20260101-0000-09999' }).waitFor();
    await page.getByLabel('Search').fill('list-42.csv');
    await page.getByRole('button', { name: 'Search' }).click();
    await page.getByRole('link', { name: '20260101-0000-00042' }).waitFor();
    expect(await rows.count()).toBe(1);
    await page.getByRole('link', { name: 'Runs', exact: true }).click(); // the search does not stay
    await page.getByRole('link', { name: '20260101-0000-09999' }).waitFor();
    expect(await page.getByLabel('Search').inputValue()).toBe('');
    await page.goBack();
    await page.getByRole('link', { name: '20260101-0000-00042' }).waitFor();
    expect(await page.getByLabel('Search').inputValue()).toBe('list-42.csv');
    expect(dashboard.complaints).toEqual([]);
  });

  test('is live again after its server was away, and rests while nobody looks', async ({ expect, onTestFinished }) => {
    const dashboard = await openDashboard(browser(), onTestFinished, { objects });
    const page = await dashboard.page('read');
    const connection = (words: string) => page.locator('.connection', { hasText: words }).waitFor();
    await connection('Live');
    await dashboard.stop();
    await connection('As of');
    await dashboard.start();
    await connection('Live');
    const run = await dashboard.submit(ids);
    await page.getByRole('link', { name: run }).waitFor();
    const look = (hidden: boolean) =>
      page.evaluate(`Object.defineProperty(document, 'hidden', { value: ${hidden}, configurable: true });
        document.dispatchEvent(new Event('visibilitychange'))`);
    await look(true);
    await connection('Paused while the page is hidden');
    await look(false);
    await connection('Live');
    expect(dashboard.complaints).toEqual([]);
  });
});
