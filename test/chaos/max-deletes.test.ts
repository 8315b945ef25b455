import { expect, onTestFinished, test } from 'vitest';
import { openHarness } from '../support/harness.ts';
import { annotations, makeIds } from '../support/ids.ts';
import { until } from '../support/processes.ts';

const ids = makeIds('m', 1_500);
const settings = { EXPUNGE_MAX_CONCURRENCY: '8', EXPUNGE_RETRY_DELAYS: '50ms,50ms,50ms,50ms,50ms' };

/** @invariant exact-max-deletes */
test('--max-deletes is kept to the number where workers are killed again and again, and by a resume to its higher one', async () => {
  const faults = { 'status-503': 0.03, 'status-503-executed': 0.03, 'status-409': 0.02 };
  const harness = await openHarness(onTestFinished, { objects: annotations(ids), latencyMs: 5, faults });
  const start = () => harness.spawnWorker([], settings);
  const workers = await Promise.all([start(), start(), start()]);
  const sent = () => new Set(harness.sandbox.seen.map((path) => decodeURIComponent(path.split('/').at(-1)!)));
  const halted = async (settled: number) => {
    const run = await harness.runIs(`halted at ${settled}`, (run) => run.state === 'halted' && run.settled === settled);
    expect(run.halt).toBe('max_deletes');
    expect(sent()).toEqual(new Set(ids.slice(0, settled)));
    return run.id;
  };
  const args = [harness.list(ids), '--resource', 'annotations', '--on-status', '409=failed', '--partial', '--detach'];
  expect(await harness.run([...args, '--yes', '--max-deletes', '777'], { env: settings })).toMatchObject({ code: 0 });
  for (const share of [200, 450]) {
    await until(`${share} ids were sent`, () => sent().size >= share);
    workers.shift()!.signal('SIGKILL');
    workers.push(await start());
  }
  const id = await halted(777);
  const refused = await harness.expunge(['resume', id]);
  expect([refused.code, refused.stderr]).toEqual([
    2,
    expect.stringContaining('sent the 777 ids that --max-deletes allows'),
  ]);
  expect(await harness.expunge(['resume', id, '--max-deletes', '778'])).toMatchObject({ code: 0 });
  await halted(778);
  expect(await harness.expunge(['resume', id, '--max-deletes', '1500'])).toMatchObject({ code: 0 });
  await harness.runIs('completed', ({ state }) => state === 'completed');
  expect(sent()).toEqual(new Set(ids));
});
