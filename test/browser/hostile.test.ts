import { readFileSync } from 'node:fs';
import type { Page } from 'playwright-core';
import { describe, test } from 'vitest';
import { noteTarget } from '../../src/ledger/known-targets.ts';
import { hasInvisible } from '../../src/model/visible.ts';
import { browserOfSuite, noBrowser, openDashboard, showsState } from '../support/browser.ts';
import { annotations } from '../support/ids.ts';

// A right-to-left override turns the text behind it around; a zero-width space and an escape character leave no mark.
const name = 'old\u202efdp\u001b[31m.csv';
const shownName = 'old\\u202efdp\\u001b[31m.csv';
const id = 'a\u200b1';
const shownId = 'a\\u200b1';

/** The text of a page as it is in its elements, with the attributes that people read. */
function textOf(page: Page): Promise<string> {
  return page.evaluate(`[document.title, document.body.textContent,
    ...[...document.querySelectorAll('[title], [aria-label]')].flatMap((one) => [one.title, one.getAttribute('aria-label') ?? ''])].join(' ')`);
}

/** What stands on a page although nobody sees it. Line breaks between its elements are white space there. */
async function hiddenOn(page: Page): Promise<string[]> {
  const text = (await textOf(page)).replaceAll('\ufe0e', ''); // behind symbols: as text, not as pictures
  return [...text].filter((character) => hasInvisible(character) || /(?!\n)\p{Cc}/u.test(character));
}

describe.skipIf(noBrowser !== null)('characters that cannot be seen', () => {
  const browser = browserOfSuite();

  test('are visible in the list of runs, on the page of a run and among its failures, and exact in its files', async ({
    expect,
    onTestFinished,
  }) => {
    const script = () => 'status-400' as const;
    const dashboard = await openDashboard(browser(), onTestFinished, {
      objects: annotations([id]),
      faults: { script },
    });
    const { harness } = dashboard;
    const list = harness.file(name, `id\n${id}\nb\u200f2\n`);
    const flags = ['--allow-invisible', '--reason', 'see \u2066ticket 4711', '--max-failures', '100%'];
    const made = await harness.expunge([
      ...['run', list, '--resource', 'annotations', '--yes', '--detach', '--json', ...flags],
    ]);
    expect(made.code, made.stderr).toBe(0);
    const { run } = JSON.parse(made.stdout.trim().split('\n').at(-1)!);
    const page = await dashboard.page('operate');
    await page.getByRole('article', { name: run }).getByText('see \\u2066ticket 4711').waitFor();
    expect(await hiddenOn(page)).toEqual([]);

    await harness.spawnWorker();
    await page.goto(`${dashboard.url}/runs/${run}`);
    await showsState(page, 'completed');
    await page.locator('#plan + dl', { hasText: shownName }).waitFor();
    const group = page.locator('details.group');
    await group.locator('summary').click();
    await group.getByText(shownId, { exact: true }).waitFor();
    await group.getByText(`${shownName}:2`).waitFor();
    expect(await hiddenOn(page)).toEqual([]);
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      group.getByRole('link', { name: 'CSV' }).click(),
    ]);
    expect(readFileSync(await download.path(), 'utf8')).toContain(id);

    await page.getByRole('link', { name: 'Runs', exact: true }).click();
    await page.getByRole('table', { name: 'Ended runs' }).getByText('see \\u2066ticket 4711').waitFor();
    expect(await hiddenOn(page)).toEqual([]);
    expect(dashboard.complaints).toEqual([]);
  });

  test('are visible in the form of a plan and among its rejected rows', async ({ expect, onTestFinished }) => {
    const dashboard = await openDashboard(browser(), onTestFinished);
    await noteTarget(dashboard.harness.redis, dashboard.harness.target, Date.now());
    const page = await dashboard.page('operate');
    await page.goto(`${dashboard.url}/new`);
    const content = Buffer.from(`id\ngood-1\n${id}\n" b "\n`);
    await page.getByLabel('List of ids').setInputFiles({ name, mimeType: 'text/csv', buffer: content });
    await page.getByText(shownName).waitFor();
    await page.getByRole('button', { name: 'Show the plan' }).click();
    await page.getByRole('row', { name: `3 ${shownId} invisible_character` }).waitFor();
    await page.getByRole('row', { name: '4 " b " outer_white_space' }).waitFor();
    expect(await hiddenOn(page)).toEqual([]);
    expect(dashboard.complaints).toEqual([]);
  });

  test('are visible in the address that leads to no run, and in the title of its page', async ({
    expect,
    onTestFinished,
  }) => {
    const dashboard = await openDashboard(browser(), onTestFinished);
    const page = await dashboard.page('read');
    await page.goto(`${dashboard.url}/runs/a%E2%80%AEb`);
    await page.getByText('No run is called a\\u202eb').waitFor();
    expect(await hiddenOn(page)).toEqual([]);
  });
});
