import { describe, test } from 'vitest';
import { type AtEnd, type Harness, openHarness } from '../support/harness.ts';
import { annotations, makeIds } from '../support/ids.ts';
import { type Running, until } from '../support/processes.ts';

const ids = makeIds('m', 3_000);
const settings = { EXPUNGE_MAX_CONCURRENCY: '8', EXPUNGE_RETRY_DELAYS: '50ms,50ms,50ms,50ms,50ms' };

/** An API that answers some requests with 503 and refuses others, and this many workers. */
async function open(atEnd: AtEnd, workers: number): Promise<{ harness: Harness; processes: Running[] }> {
  const faults = { 'status-503': 0.03, 'status-503-executed': 0.03, 'status-409': 0.02 };
  const harness = await openHarness(atEnd, { objects: annotations(ids), latencyMs: 5, faults });
  const start = () => harness.spawnWorker(['--rate', '3000/s'], settings);
  return { harness, processes: await Promise.all(Array.from({ length: workers }, start)) };
}

const command = (harness: Harness, ...args: string[]) => {
  const all = ['run', harness.list(ids), '--resource', 'annotations', '--on-status', '409=failed', ...args];
  return harness.spawn([...all, '--yes'], settings);
};
const isHalted = ({ state }: { state: string }) => state === 'halted';

/** The different ids that the server was asked to delete. */
const sentTo = ({ sandbox }: Harness) =>
  new Set(sandbox.seen.map((path) => decodeURIComponent(path.slice(path.lastIndexOf('/') + 1))));

describe.concurrent('--max-deletes, as the server counts it', () => {
  test('is kept by four workers to the number, and by a resume to its higher one', async ({
    expect,
    onTestFinished,
  }) => {
    const { harness } = await open(onTestFinished, 4);
    expect(await command(harness, '--max-deletes', '1234', '--partial', '--detach').ended).toMatchObject({ code: 0 });
    const { id, halt } = await harness.runIs('halted', isHalted);
    expect(halt).toBe('max_deletes');
    expect(sentTo(harness)).toEqual(new Set(ids.slice(0, 1_234)));
    const resumed = harness.spawn(['resume', id]);
    expect((await resumed.ended).code).toBe(2);
    expect(resumed.stderr).toContain('has sent the 1,234 ids that --max-deletes allows');
    expect(await harness.spawn(['resume', id, '--max-deletes', '1235']).ended).toMatchObject({ code: 0 });
    await harness.runIs('halted again', (run) => isHalted(run) && run.settled === 1_235);
    expect(sentTo(harness)).toEqual(new Set(ids.slice(0, 1_235)));
    expect(await command(harness, '--max-deletes', '2700', '--partial', '--detach').ended).toMatchObject({ code: 0 });
    await harness.runIs('halted again', (run) => isHalted(run) && run.settled === 2_700);
    expect(sentTo(harness)).toEqual(new Set(ids.slice(0, 2_700)));
    expect(await command(harness, '--max-deletes', '3000', '--detach').ended).toMatchObject({ code: 0 });
    await harness.runIs('completed', ({ state }) => state === 'completed');
    expect(sentTo(harness)).toEqual(new Set(ids));
  });

  /** @invariant exact-max-deletes */
  test('is kept where workers are killed again and again, and reached all the same', async ({
    expect,
    onTestFinished,
  }) => {
    const { harness, processes } = await open(onTestFinished, 4);
    expect(await command(harness, '--max-deletes', '1777', '--partial', '--detach').ended).toMatchObject({ code: 0 });
    for (const share of [300, 800, 1_300]) {
      await until(`${share} ids were sent`, async () => sentTo(harness).size >= share);
      processes.shift()!.signal('SIGKILL');
      processes.push(await harness.spawnWorker(['--rate', '3000/s'], settings));
    }
    const { halt, settled } = await harness.runIs('halted', isHalted, 90_000);
    expect([halt, settled]).toEqual(['max_deletes', 1_777]);
    expect(sentTo(harness)).toEqual(new Set(ids.slice(0, 1_777)));
  });

  test('is kept by one command, which exits 4 and goes on with a higher number', async ({ expect, onTestFinished }) => {
    const { harness } = await open(onTestFinished, 0);
    const first = command(harness, '--max-deletes', '999', '--partial');
    expect((await first.ended).code).toBe(4);
    expect(first.stderr).toMatch(/^ {2}At most {3}999 ids are sent, the first of the list/m);
    expect(first.stderr).toMatch(
      /halted: 999 ids have an outcome, as many as --max-deletes allows; 2001 were not sent/,
    );
    expect(first.stderr).toContain('Continue with a higher --max-deletes: ');
    expect(sentTo(harness)).toEqual(new Set(ids.slice(0, 999)));
    const same = await command(harness, '--max-deletes', '999', '--partial').ended;
    expect(same.code).toBe(4);
    expect(sentTo(harness).size).toBe(999);
    const last = await command(harness, '--max-deletes', '5000').ended;
    expect(last.code).toBe(3); // some were refused
    expect(sentTo(harness)).toEqual(new Set(ids));
  });
});
