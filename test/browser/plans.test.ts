import { describe, test } from 'vitest';
import { readAudit } from '../../src/ledger/audit.ts';
import { noteTarget } from '../../src/ledger/known-targets.ts';
import { barriersOn, browserOfSuite, noBrowser, openDashboard } from '../support/browser.ts';
import { annotations, makeIds } from '../support/ids.ts';

const ids = makeIds('p', 3);

describe.skipIf(noBrowser !== null)('plans in the browser', () => {
  const browser = browserOfSuite();

  async function openWithPlanner(atEnd: Parameters<typeof openDashboard>[1]) {
    const dashboard = await openDashboard(browser(), atEnd, { objects: annotations(ids) });
    const { harness } = dashboard;
    await noteTarget(harness.redis, harness.target, Date.now());
    const planner = await dashboard.page('plan');
    /** Makes a plan on the page, and returns its id. */
    const plan = async (approveBy = '') => {
      await planner.goto(`${dashboard.url}/new`);
      const buffer = Buffer.from(`id\n${ids.join('\n')}\n`);
      await planner.getByLabel('List of ids').setInputFiles({ name: 'old.csv', mimeType: 'text/csv', buffer });
      await planner.getByText('More settings').click();
      await planner.getByRole('textbox', { name: 'Approved by' }).fill(approveBy);
      await planner.getByRole('button', { name: 'Show the plan' }).click();
      await planner.getByText('Nothing was sent. The plan waits').waitFor();
      const link = planner.getByRole('link', { name: /^plan / });
      return (await link.innerText()).replace('plan ', '');
    };
    return { ...dashboard, planner, plan };
  }

  test('wait for another person, who sees them in a list, and deletes them after typing their number', async ({
    expect,
    onTestFinished,
  }) => {
    const dashboard = await openWithPlanner(onTestFinished);
    const { harness, planner, url } = dashboard;
    const id = await dashboard.plan();
    await planner.getByRole('link', { name: `plan ${id}` }).click();
    expect(await planner.getByRole('button', { name: 'Approve …' }).isDisabled()).toBe(true);
    expect(await planner.getByRole('button', { name: 'Refuse …' }).isDisabled()).toBe(true);
    const page = await dashboard.page('operate');
    await page.goto(`${url}/plans`);
    const row = page.getByRole('table', { name: 'Plans that wait' }).getByRole('row').nth(1);
    expect(await row.innerText()).toMatch(/old\.csv\s+tester-1/);
    expect(await barriersOn(page)).toEqual([]);
    await row.getByRole('link', { name: id }).click();
    await page.getByText('tester-1 made this plan').waitFor();
    expect(await barriersOn(page)).toEqual([]);
    await page.getByRole('button', { name: 'Approve …' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Type the number of ids to delete: 3').fill('3');
    await dialog.getByLabel('Reason').fill('agreed');
    await dialog.getByRole('button', { name: 'Delete 3 annotations' }).click();
    await page.waitForURL(/\/runs\//);
    const run = await harness.onlyRun();
    const entry = (await readAudit(harness.redis, run)).find(({ action }) => action === 'apply');
    expect(entry).toMatchObject({ who: 'tester-2', planned_by: 'tester-1', reason: 'agreed' });
    await page.goto(`${url}/plans`);
    await page.getByRole('table', { name: 'Decided plans' }).getByText('applied by tester-2').waitFor();
    await planner.getByText(`tester-2 applied plan ${id}`).waitFor(); // the page of the planner says so by itself
    expect(dashboard.complaints.filter((words) => !words.includes('409'))).toEqual([]);
  });

  test('are refused with a reason that the planner reads, and are approved by nobody then', async ({
    expect,
    onTestFinished,
  }) => {
    const dashboard = await openWithPlanner(onTestFinished);
    const id = await dashboard.plan('tester-2');
    const [named, other] = [await dashboard.page('operate'), await dashboard.page('operate')];
    await other.goto(`${dashboard.url}/plans/${id}`);
    await other.getByText('Only tester-2 can approve it, and not tester-1.').waitFor();
    expect(await other.getByRole('button', { name: 'Approve …' }).isDisabled()).toBe(true);
    await named.goto(`${dashboard.url}/plans/${id}`);
    await other.getByRole('button', { name: 'Refuse …' }).click();
    await other.getByRole('dialog').getByLabel('Reason').fill('wrong list');
    await other.getByRole('dialog').getByRole('button', { name: 'Refuse the plan' }).click();
    await other.getByRole('table', { name: 'Decided plans' }).getByText('refused by tester-3: wrong list').waitFor();
    await named.getByText(/tester-3 refused plan .* wrong list; nothing was sent/).waitFor();
    expect(await named.getByRole('button', { name: 'Approve …' }).count()).toBe(0);
    expect([await dashboard.harness.runs(), dashboard.harness.sandbox.seen]).toEqual([[], []]);
  });
});
