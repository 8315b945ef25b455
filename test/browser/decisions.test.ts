import { readFileSync } from 'node:fs';
import { describe, test } from 'vitest';
import { browserOfSuite, noBrowser, openDashboard, showsState } from '../support/browser.ts';
import { annotations, makeIds } from '../support/ids.ts';
import { until } from '../support/processes.ts';

const ids = makeIds('c', 400);
const objects = annotations(ids);

describe.skipIf(noBrowser !== null)('what an operator decides in the browser', () => {
  const browser = browserOfSuite();

  test('is, for a run whose command is gone, whether workers delete it, also when it was paused before', async ({
    expect,
    onTestFinished,
  }) => {
    const dashboard = await openDashboard(browser(), onTestFinished, { objects });
    const { harness } = dashboard;
    const page = await dashboard.page('operate');
    const dialog = page.getByRole('dialog');
    const lists = [ids.slice(0, 200), ids.slice(200)];
    for (const [n, isPaused] of [false, true].entries()) {
      const list = harness.file(`${n}.txt`, `${lists[n]!.join('\n')}\n`);
      const before = harness.arrivals.length;
      const command = harness.spawn(['run', list, '--resource', 'annotations', '--yes', '--rate', '20/s']);
      await until('requests arrive', () => harness.arrivals.length > before + 5);
      const { id } = (await harness.runs()).find(({ state }) => state === 'running')!;
      await page.goto(`${dashboard.url}/runs/${id}`);
      await showsState(page, 'running');
      if (isPaused) {
        await harness.expunge(['pause', id]);
        await showsState(page, 'paused');
      }
      command.signal('SIGKILL');
      await command.ended;
      if (isPaused) {
        const resume = page.getByRole('button', { name: 'Resume …' });
        await until('the page knows that its command has ended', async () => {
          await resume.click();
          const isKnown = await dialog.getByText('its command has ended').isVisible();
          if (!isKnown) await dialog.getByRole('button', { name: 'Leave it' }).click();
          return isKnown;
        });
        expect(await dialog.getByLabel('Deleted by').inputValue()).toBe('the workers of its target');
        await dialog.getByLabel('Reason').fill('go on');
        await dialog.getByRole('button', { name: 'Resume', exact: true }).click();
      } else {
        await showsState(page, 'running · dead command');
        await page.getByRole('button', { name: 'Leave to workers …' }).click();
        await dialog.getByLabel('Reason').fill('its machine is gone');
        await dialog.getByRole('button', { name: 'Leave to workers', exact: true }).click();
      }
      const warned = dialog.getByText('no worker of this target is alive');
      if (n === 0) {
        await warned.waitFor();
        await dialog.getByRole('button', { name: 'Close' }).click();
        await harness.spawnWorker();
      }
      await showsState(page, 'completed');
    }
    expect(dashboard.complaints).toEqual([]);
  });

  test('is to cancel a run before its start, beside the time that is left', async ({ expect, onTestFinished }) => {
    const dashboard = await openDashboard(browser(), onTestFinished, { objects });
    const { harness } = dashboard;
    await harness.spawnWorker();
    await harness.run([harness.list(ids), '--resource', 'annotations', '--detach', '--yes', '--grace', '4min']);
    const { id } = await harness.onlyRun();
    const page = await dashboard.page('operate');
    await page.goto(`${dashboard.url}/runs/${id}`);
    await showsState(page, 'running · grace');
    const actions = page.getByRole('group', { name: 'Actions' });
    const timer = actions.getByRole('timer');
    const seen = new Set<string>();
    await until('it counts down', async () => seen.add((await timer.innerText()).trim()).size >= 3);
    for (const text of seen) expect(text).toMatch(/^nothing is sent for another (4 min|3 min \d+ s)$/);
    await actions.getByRole('button', { name: 'Cancel …' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel(/^Type the number of ids/).fill(String(ids.length));
    await dialog.getByLabel('Reason').fill('the wrong list');
    await dialog.getByRole('button', { name: 'Cancel the run', exact: true }).click();
    await showsState(page, 'cancelled');
    expect(await timer.count()).toBe(0);
    expect(harness.sandbox.seen).toEqual([]);
    expect(dashboard.complaints).toEqual([]);
  });

  test('is which outcomes are retried: what a cancel left is not, unless it is checked', async ({
    expect,
    onTestFinished,
  }) => {
    const refused = new Set(ids.slice(0, 12));
    const script = (_: string, id: string) => (refused.has(id) ? ('status-400' as const) : null);
    const dashboard = await openDashboard(browser(), onTestFinished, { objects, faults: { script } });
    const { harness } = dashboard;
    const run = await dashboard.submit(ids, ['--rate', '40/s', '--max-failures', '100', '--expect', '400']);
    await harness.spawnWorker();
    await until('some are deleted', () => harness.arrivals.length > 60);
    await harness.expunge(['cancel', run, '--yes']);
    const { counts } = await harness.runIs('cancelled', ({ state }) => state === 'cancelled');
    const [left, failed] = [counts.not_attempted, counts.failed];
    expect(left).toBeGreaterThan(100);
    expect(failed).toBe(refused.size);

    const page = await dashboard.page('operate');
    await page
      .getByRole('row', { name: run })
      .getByRole('cell', { name: String(left), exact: true })
      .waitFor();
    await page.goto(`${dashboard.url}/runs/${run}`);
    await showsState(page, 'cancelled');
    const share = (Math.floor(((ids.length - left) / ids.length) * 1_000) / 10).toFixed(1);
    await page.getByText(`${share} % of 400 ids, ${left} left`).waitFor();
    expect(await page.title()).toContain(`${share} % cancelled`);
    await page.getByRole('link', { name: `${failed} rows without success` }).waitFor();
    await page.getByRole('heading', { name: `Failures ${failed}` }).waitFor();
    const all = page.locator('section[aria-labelledby=failures] > p', { hasText: `Download all ${failed}` });
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      all.getByRole('link', { name: 'CSV' }).click(),
    ]);
    expect(
      readFileSync(await download.path(), 'utf8')
        .trim()
        .split('\n'),
    ).toHaveLength(1 + failed);

    await page.getByRole('button', { name: 'Retry …' }).click();
    const dialog = page.getByRole('dialog');
    const box = (outcome: string) => dialog.getByRole('checkbox', { name: outcome });
    expect([await box('failed').isChecked(), await box('not_attempted').isChecked()]).toEqual([true, false]);
    await dialog.getByText(`Type the number of ids that are sent again: ${failed}`).waitFor();
    await box('not_attempted').check();
    await dialog.getByText(`Type the number of ids that are sent again: ${failed + left}`).waitFor();
    await box('failed').uncheck();
    await dialog.getByLabel(`Type the number of ids that are sent again: ${left}`).fill(String(left));
    await box('not_attempted').uncheck();
    expect(await dialog.getByRole('button', { name: 'Make the run' }).isDisabled()).toBe(true);
    await box('failed').check();
    await dialog.getByLabel(`Type the number of ids that are sent again: ${failed}`).fill(String(failed));
    await dialog.getByLabel('Reason').fill('only these');
    await dialog.getByRole('button', { name: 'Make the run' }).click();
    await showsState(page, 'completed');
    await page.getByText(`of ${failed} ids`).waitFor();
    expect(dashboard.complaints).toEqual([]);
  });

  test('is about all failures, also those that no group shows yet', async ({ expect, onTestFinished }) => {
    const refused = new Set(ids.filter((_, n) => n % 20 === 3));
    const script = (_: string, id: string) => (refused.has(id) ? ('status-400' as const) : null);
    const dashboard = await openDashboard(browser(), onTestFinished, { objects, faults: { script } });
    const run = await dashboard.submit(ids, ['--max-failures', '100%']);
    const page = await dashboard.page('read');
    await page.route(/\/failures$/, (route) => route.fulfill({ json: { items: [] } })); // they are read later
    await dashboard.harness.spawnWorker();
    await page.goto(`${dashboard.url}/runs/${run}`);
    await showsState(page, 'completed');
    await page.getByText(`${refused.size} are not in the groups yet`).waitFor();
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page
        .locator('p', { hasText: `Download all ${refused.size}` })
        .getByRole('link', { name: 'CSV' })
        .click(),
    ]);
    expect(
      readFileSync(await download.path(), 'utf8')
        .trim()
        .split('\n'),
    ).toHaveLength(1 + refused.size);
    expect(dashboard.complaints).toEqual([]);
  });
});
