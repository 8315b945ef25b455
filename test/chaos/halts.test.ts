import { describe, test } from 'vitest';
import type { FaultKind } from '../../src/sandbox/fault-kinds.ts';
import { type AtEnd, type Harness, openHarness } from '../support/harness.ts';
import { annotations, makeIds } from '../support/ids.ts';

const ids = makeIds('h', 1_500);
const objects = annotations(ids);
const concurrency = 16;
const settings = { EXPUNGE_MAX_CONCURRENCY: String(concurrency), EXPUNGE_RETRY_DELAYS: '50ms,50ms,50ms,50ms,50ms' };

function run(harness: Harness, args: string[] = [], env: NodeJS.ProcessEnv = {}, list = ids) {
  return harness.spawn(['run', harness.list(list), '--resource', 'annotations', '--yes', ...args], {
    ...settings,
    ...env,
  });
}

/** Requests that may still be under way when the rule strikes: a window of each of two chunks, and what is on the wire. */
const underWay = 2 * 4 * concurrency + concurrency;

describe.concurrent('a run whose base URL is wrong', () => {
  const openWrong = async (atEnd: AtEnd) => {
    const harness = await openHarness(atEnd, { objects, latencyMs: 30 });
    return { harness, env: { EXPUNGE_BASE_URL: `${harness.sandbox.url}/wrong` } };
  };

  test('is halted with exit 4 by the first 50 ids that are not there, which stay open, and deletes nothing', async ({
    expect,
    onTestFinished,
  }) => {
    const { harness, env } = await openWrong(onTestFinished);
    const running = run(harness, [], env);
    expect(await running.ended, running.stderr).toMatchObject({ code: 4 });
    const halted = await harness.onlyRun();
    expect(halted).toMatchObject({ state: 'halted', halt: 'all_absent', by: 'guard' });
    expect(harness.sandbox.seen.length).toBeLessThanOrEqual(50 + underWay);
    expect(halted).toMatchObject({ settled: 0, counts: { absent: 0 } });
    expect(running.stderr).toMatch(
      /halted: \d+ ids in a row were not there \(404 or 410\) while nothing was deleted, such as (?:h-0\S+ ){3}.*Check --base-url/,
    );
    const status = harness.spawn(['status', halted.id]);
    expect(await status.ended).toMatchObject({ code: 0 });
    expect(status.stdout).toContain(`Halted: ${halted.reason}`);
    expect(status.stdout).toContain('such as h-0');
    expect(running.stderr).toMatch(/If they are expected to be gone: \S+node \S+bin\.js run .* --expect-absent/);
    const again = run(harness, [], env);
    expect(await again.ended).toMatchObject({ code: 4 });
    expect(await harness.runs()).toHaveLength(1);
    expect(harness.sandbox.remaining()).toBe(ids.length);
  });

  test('goes on to its end with --expect-absent, on the command line or of resume', async ({
    expect,
    onTestFinished,
  }) => {
    const { harness, env } = await openWrong(onTestFinished);
    expect(await run(harness, [], env).ended).toMatchObject({ code: 4 });
    const { id } = await harness.onlyRun();
    const resumed = harness.spawn(['resume', id, '--expect-absent']);
    expect(await resumed.ended).toMatchObject({ code: 0 });
    expect(await harness.onlyRun()).toMatchObject({ state: 'running', expectAbsent: true });
    expect(await run(harness, [], env).ended).toMatchObject({ code: 0 });
    expect(await harness.onlyRun()).toMatchObject({ state: 'completed', counts: { absent: ids.length } });
    expect(await run(harness, ['--expect-absent'], env).ended).toMatchObject({ code: 0 });
    expect((await harness.runs()).map(({ state }) => state)).toEqual(['completed', 'completed']);
  });

  test('is halted for all workers by what they see together', async ({ expect, onTestFinished }) => {
    const { harness, env } = await openWrong(onTestFinished);
    await Promise.all([
      harness.spawnWorker([], { ...settings, ...env }),
      harness.spawnWorker([], { ...settings, ...env }),
    ]);
    expect(await run(harness, ['--detach'], env).ended).toMatchObject({ code: 0 });
    const halted = await harness.runIs('halted', ({ state }) => state === 'halted');
    expect(halted).toMatchObject({ halt: 'all_absent' });
    expect(harness.sandbox.seen.length).toBeLessThanOrEqual(50 + 2 * underWay);
    const resumed = harness.spawn(['resume', halted.id, '--expect-absent']);
    expect(await resumed.ended).toMatchObject({ code: 0 });
    await harness.runIs('completed', ({ state }) => state === 'completed');
  });
});

describe.concurrent('a run that the API refuses', () => {
  test.for([
    [403, 'forbidden', 20],
    [405, 'wrong_endpoint', 3],
  ] as const)('is halted by %i for %s after %i ids', async ([status, halt, after], { expect, onTestFinished }) => {
    const harness = await openHarness(onTestFinished, { objects, latencyMs: 30, faults: { [`status-${status}`]: 1 } });
    expect(await run(harness).ended).toMatchObject({ code: 4 });
    expect(await harness.onlyRun()).toMatchObject({ state: 'halted', halt, by: 'guard' });
    expect(harness.arrivals.length).toBeLessThanOrEqual(after + underWay);
    harness.sandbox.faults = {};
    expect(await run(harness).ended).toMatchObject({ code: 3 });
    const { counts } = await harness.onlyRun();
    expect(counts.deleted + counts.failed).toBe(ids.length);
  });

  test('is halted by the first 402, which costs no id anything', async ({ expect, onTestFinished }) => {
    const harness = await openHarness(onTestFinished, { objects, latencyMs: 30, faults: { 'status-402': 1 } });
    const running = run(harness);
    expect(await running.ended).toMatchObject({ code: 4 });
    expect(await harness.onlyRun()).toMatchObject({ state: 'halted', halt: 'halting_status', attempts: 0, settled: 0 });
    expect(running.stderr).toContain('the API answered 402');
    expect(harness.arrivals.length).toBeLessThanOrEqual(underWay);
    harness.sandbox.faults = {};
    expect(await run(harness).ended).toMatchObject({ code: 0 });
  });
});

describe.concurrent('--on-status', () => {
  const few = makeIds('t', 12);
  const [conflicted, accepted, gone, ...rest] = few as [string, string, string, ...string[]];
  const refused = rest.slice(0, 2);
  const script = (_resource: unknown, id: string, nth: number): FaultKind | null => {
    if (id === conflicted && nth <= 2) return 'status-409';
    if (refused.includes(id)) return 'status-400';
    if (id === accepted && nth === 1) return 'status-202-executed';
    return null;
  };
  const open = (atEnd: AtEnd) =>
    openHarness(atEnd, { objects: annotations(few.filter((id) => id !== gone)), faults: { script } });
  const onStatus = '409=retry,404=failed,400=absent';

  test('gives answers another meaning for the run, and nothing but 204 is deleted', async ({
    expect,
    onTestFinished,
  }) => {
    const harness = await open(onTestFinished);
    const running = run(harness, ['--on-status', '409=retry,404=failed', '--on-status', '400=absent'], {}, few);
    expect(await running.ended, running.stderr).toMatchObject({ code: 3 });
    const { counts, onStatus: stored } = await harness.onlyRun();
    expect(stored).toBe('400=absent,404=failed,409=retry');
    expect(counts).toMatchObject({ deleted: few.length - 4, absent: 2, failed: 1, unknown: 1 });
    expect(running.stderr).toContain('On status 400=absent, 404=failed, 409=retry');
  });

  test('lets a 202 be asked again, which is never more than gone_unconfirmed', async ({ expect, onTestFinished }) => {
    const harness = await open(onTestFinished);
    await run(harness, ['--on-status', '202=retry'], {}, few).ended;
    expect((await harness.onlyRun()).counts).toMatchObject({ gone_unconfirmed: 1, unknown: 0, absent: 1, failed: 2 });
  });

  test('is taken from the run by workers, whatever they were told themselves', async ({ expect, onTestFinished }) => {
    const harness = await open(onTestFinished);
    await harness.spawnWorker([], { ...settings, EXPUNGE_ON_STATUS: '404=halt,400=halt,202=halt' });
    await run(harness, ['--detach', '--on-status', onStatus], {}, few).ended;
    const { counts } = await harness.runIs('completed', ({ state }) => state === 'completed');
    expect(counts).toMatchObject({ deleted: few.length - 4, absent: 2, failed: 1, unknown: 1 });
  });

  test('stays as it was when the run goes on; another one is refused', async ({ expect, onTestFinished }) => {
    const harness = await open(onTestFinished);
    expect(await run(harness, ['--on-status', '404=halt'], {}, few).ended).toMatchObject({ code: 4 });
    const other = run(harness, ['--on-status', '404=failed'], {}, few);
    expect(await other.ended).toMatchObject({ code: 2 });
    expect(other.stderr).toContain('was started with --on-status 404=halt, not with 404=failed');
    expect(await run(harness, [], {}, few).ended).toMatchObject({ code: 4 });
    expect(await run(harness, ['--on-status', '404=halt'], {}, few).ended).toMatchObject({ code: 4 });
  });

  test('is shown by check, and refused where it could not be true', async ({ expect, onTestFinished }) => {
    const harness = await open(onTestFinished);
    const check = harness.spawn(['check', '--verdicts', '--on-status', '404=failed']);
    expect(await check.ended).toMatchObject({ code: 0 });
    expect(check.stdout).toMatch(/^\* 404 +failed$/m);
    expect(check.stdout).toMatch(/^ {2}410 +absent, or gone_unconfirmed/m);
    expect(check.stdout.replace(/\s+/g, ' ')).toMatch(
      /404, 410, unless --expect-absent for 50 ids in a row, or all of the first 50 ids/,
    );
    const wrong = run(harness, ['--on-status', '200=deleted'], {}, few);
    expect(await wrong.ended).toMatchObject({ code: 2 });
    expect(wrong.stderr).toContain('--on-status: 200: "deleted" is not one of failed, absent, retry, wait, halt');
  });
});
