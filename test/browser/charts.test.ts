import type { Page } from 'playwright-core';
import { describe, test } from 'vitest';
import { barriersOn, browserOfSuite, noBrowser, openDashboard } from '../support/browser.ts';
import { annotations, makeIds } from '../support/ids.ts';
import { until } from '../support/processes.ts';

const ids = makeIds('w', 1_200);

/**
 * The areas behind the first chart of a page, each by the colour of its first pixel: read just below the upper edge, which no value reaches. An
 * area is a quarter opaque; what crosses it is more so.
 */
function areasOn(page: Page): Promise<string[]> {
  return page.evaluate(`(() => {
    const canvas = document.querySelector('.plot canvas');
    const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext('2d');
    copy.drawImage(canvas, 0, 0);
    const { data } = copy.getImageData(0, 18 * devicePixelRatio, canvas.width, 1);
    const isArea = (x) => data[4 * x + 3] > 55 && data[4 * x + 3] < 75;
    const from = [...Array(canvas.width).keys()].filter((x) => isArea(x) && !isArea(x - 1) && isArea(x + 4));
    return from.map((x) => [...data.slice(4 * x, 4 * x + 3)].join());
  })()`);
}

describe.skipIf(noBrowser !== null)('the charts of a run', () => {
  const browser = browserOfSuite();

  test('shade the times in which it waited, by day and by night, and say in words what for', async ({
    expect,
    onTestFinished,
  }) => {
    const rate = { perSecond: 50, windowMs: 2_000, retryAfter: 'seconds', retryAfterSeconds: 3 } as const;
    const dashboard = await openDashboard(browser(), onTestFinished, { objects: annotations(ids), faults: { rate } });
    const run = await dashboard.submit(ids);
    const page = await dashboard.page('read', { colorScheme: 'light' });
    await page.goto(`${dashboard.url}/runs/${run}`);
    await page.getByText('Nothing is measured yet').waitFor();
    await dashboard.harness.spawnWorker();
    await page.getByText(/^Waits [1-9]\d*, shaded in the charts$/).click();
    const waits = page.getByRole('table', { name: 'Waits' });
    await waits.getByText('the server answered 429 and sent Retry-After 3').first().waitFor();
    await until('an area is drawn', async () => (await areasOn(page)).length > 0);
    await page.getByRole('img', { name: /^Requests over time, \d+ waits? shaded/ }).waitFor();
    const byDay = await areasOn(page);
    await page.emulateMedia({ colorScheme: 'dark' });
    await until('it is drawn for the night', async () => {
      const [area] = await areasOn(page);
      return area !== undefined && area !== byDay[0];
    });
    expect(await barriersOn(page)).toEqual([]);

    await until('the pointer finds a wait', async () => {
      const field = page.locator('.plot .u-over').first();
      const { width } = (await field.boundingBox())!;
      for (let x = 4; x < width; x += 12) {
        await field.hover({ position: { x, y: 60 } });
        const words = await page.locator('figure .read').first().innerText();
        if (/waiting: the server answered 429 and sent Retry-After 3$/.test(words)) return true;
      }
      return false;
    });
    expect(dashboard.complaints).toEqual([]);
  });

  test('say so where they cannot be loaded, and are drawn once they can', async ({ expect, onTestFinished }) => {
    const dashboard = await openDashboard(browser(), onTestFinished, { objects: annotations(ids) });
    const run = await dashboard.submit(ids, ['--rate', '40/s']);
    await dashboard.harness.spawnWorker();
    const page = await dashboard.page('read');
    const library = '**/uPlot.iife.min.js';
    await page.route(library, (route) => route.abort());
    await page.goto(`${dashboard.url}/runs/${run}`);
    const words = page.getByText('The charts could not be loaded. Their numbers are in the table below.');
    await words.waitFor();
    await page.unroute(library);
    await page.locator('.plot canvas').first().waitFor();
    await words.waitFor({ state: 'detached' });
    expect(await page.locator('.plot').count()).toBeGreaterThan(0);
  });

  test('shade nothing for a run that never waited', async ({ expect, onTestFinished }) => {
    const dashboard = await openDashboard(browser(), onTestFinished, { objects: annotations(ids) });
    const run = await dashboard.submit(ids.slice(0, 400), ['--rate', '50/s']);
    await dashboard.harness.spawnWorker();
    const page = await dashboard.page('read');
    await page.goto(`${dashboard.url}/runs/${run}`);
    await page.locator('.plot canvas').first().waitFor();
    expect(await areasOn(page)).toEqual([]);
    expect(await page.getByText(/^Waits/).count()).toBe(0);
    expect(await page.locator('.keys').getByText('waiting').count()).toBe(0);
  });
});
