import { gzipSync } from 'node:zlib';
import { describe, test } from 'vitest';
import { noteTarget } from '../../src/ledger/known-targets.ts';
import { browserOfSuite, noBrowser, openDashboard } from '../support/browser.ts';
import { makeIds } from '../support/ids.ts';

const [one = '', two = ''] = makeIds('l', 2);

/** A list as somebody chooses it, and what they fill in for it. */
type Example = { name: string; content: string | Buffer; fill?: Record<string, string>; hasNoHeader?: boolean };

const examples: Example[] = [
  { name: 'a.csv', content: `id\n${one}\n${two}\n` },
  { name: 'b.csv', content: `name;user\nx;${one}\ny;${two}\n`, fill: { Delimiter: ';', Column: 'user' } },
  { name: 'c.csv', content: `${one},x\n${two},y\n`, hasNoHeader: true },
  { name: 'd.tsv', content: `name\tid\nx\t${one}\ny\t${two}\n` },
  { name: 'e.txt', content: `${one}\n${two}\n` },
  { name: 'f.ndjson', content: `{"id":"${one}"}\n{"id":"${two}"}\n` },
  { name: 'g.jsonl', content: `"${one}"\n"${two}"\n` },
  { name: 'h.json', content: `[{"user":"${one}"},{"user":"${two}"}]`, fill: { Column: 'user' } },
  { name: 'i.txt.gz', content: gzipSync(`${one}\n${two}\n`) },
];

describe.skipIf(noBrowser !== null)('a list in the browser', () => {
  const browser = browserOfSuite();

  test('may be of every format that the command reads', async ({ expect, onTestFinished }) => {
    const dashboard = await openDashboard(browser(), onTestFinished);
    await noteTarget(dashboard.harness.redis, dashboard.harness.target, Date.now());
    const page = await dashboard.page('operate');
    for (const { name, content, fill = {}, hasNoHeader } of examples) {
      await page.goto(`${dashboard.url}/new`);
      await page.getByLabel('List of ids').setInputFiles({ name, mimeType: '', buffer: Buffer.from(content) });
      await page.getByText('How the list is written').click();
      for (const [label, value] of Object.entries(fill)) await page.getByRole('textbox', { name: label }).fill(value);
      if (hasNoHeader) await page.getByLabel('No header').check();
      await page.getByRole('button', { name: 'Show the plan' }).click();
      await page.getByText(`${one}, ${two}`).or(page.getByRole('alert')).waitFor();
      expect([name, await page.getByRole('alert').allInnerTexts()]).toEqual([name, []]);
    }
    await page.getByLabel('List of ids').setInputFiles({ name: 'j.xlsx', mimeType: '', buffer: Buffer.from('x') });
    await page.getByRole('button', { name: 'Show the plan' }).click();
    await page.getByText('Expected a file whose name ends with .csv, .tsv, .txt').waitFor();
    expect(dashboard.complaints).toEqual([]);
  });

  test('that deletes nothing says why, and its rejected rows are all there', async ({ expect, onTestFinished }) => {
    const dashboard = await openDashboard(browser(), onTestFinished);
    await noteTarget(dashboard.harness.redis, dashboard.harness.target, Date.now());
    const page = await dashboard.page('operate');
    await page.goto(`${dashboard.url}/new`);
    await page
      .getByLabel('List of ids')
      .setInputFiles({ name: 'bad.csv', mimeType: 'text/csv', buffer: Buffer.from('id\na/1\na/2\n') });
    await page.getByRole('button', { name: 'Show the plan' }).click();
    await page.getByText('No row of the list holds a usable id. Nothing was sent.').waitFor();
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('link', { name: 'Download all 2' }).click(),
    ]);
    expect(download.suggestedFilename()).toBe('rejected-rows-of-bad.csv');
    expect(await page.locator('#plan').getByRole('button').count()).toBe(0);
    expect(dashboard.complaints).toEqual([]);
  });

  test('that is read in the wrong way says what to change on the page, and why each row is rejected', async ({
    expect,
    onTestFinished,
  }) => {
    const dashboard = await openDashboard(browser(), onTestFinished);
    await noteTarget(dashboard.harness.redis, dashboard.harness.target, Date.now());
    const page = await dashboard.page('operate');
    await page.goto(`${dashboard.url}/new`);
    const rows = ['user,object', ...Array.from({ length: 1_200 }, (_, i) => `u${i},a-${i}`), 'u1,a/7'];
    await page
      .getByLabel('List of ids')
      .setInputFiles({ name: 'old.csv', mimeType: 'text/csv', buffer: Buffer.from(`${rows.join('\n')}\n`) });
    await page.getByRole('button', { name: 'Show the plan' }).click();
    await page.getByText('name the column of the ids, as in “column” NAME; or add “no header”').waitFor();
    await page.getByRole('checkbox', { name: 'No header' }).waitFor();

    await page.getByRole('textbox', { name: 'Column' }).fill('object');
    await page.getByRole('button', { name: 'Show the plan' }).click();
    await page.getByRole('cell', { name: /^unsafe_character the id holds one of/ }).waitFor();
    const number = page.getByLabel('Type the number of ids to delete: 1,200');
    expect(await number.getAttribute('title')).toBe('type 1200 or 1,200');
  });
});
