import { describe, expect, onTestFinished, test } from 'vitest';
import { summaryIn } from '../../support/command.ts';
import { type AtEnd, openHarness } from '../../support/harness.ts';
import { annotations, makeIds } from '../../support/ids.ts';
import { until } from '../../support/processes.ts';

const ids = makeIds('a', 3);
const minute = 60_000;

async function open(atEnd: AtEnd) {
  const harness = await openHarness(atEnd, { objects: annotations(ids) });
  const list = harness.list(ids);
  const line = ['run', list, '--resource', 'annotations', '--yes'];
  return { harness, list, line };
}

describe('a run with a grace period', () => {
  test('waits in the foreground, says when it starts, and can be cancelled without a request', async () => {
    const { harness, line } = await open(onTestFinished);
    const running = harness.start([...line, '--json', '--grace', '2h']);
    const { id, startsAt, acceptedAt } = await harness.runIs('running', ({ state }) => state === 'running');
    expect(startsAt - acceptedAt).toBe(120 * minute);
    const words = 'in its grace period, nothing is sent yet';
    const waiting = new RegExp(`Waiting until .* \\((2 h|1 h 59 min)\\): ${words}\\.`);
    const stdout = await until('its command is known to live', async () => {
      const { stdout } = await harness.expunge(['status', id]);
      return waiting.test(stdout) ? stdout : null;
    });
    expect(stdout).toContain(`Cancel it: expunge cancel ${id}`);
    const status = summaryIn(await harness.expunge(['status', id, '--json']));
    expect(status).toMatchObject({ state: 'running', starts_at: new Date(startsAt).toISOString() });
    expect((await harness.expunge(['runs'])).stdout).toMatch(/grace until/);
    expect((await harness.expunge(['cancel', id, '--yes'])).code).toBe(0);
    expect((await running.ended).code).toBe(3);
    expect(harness.sandbox.seen).toEqual([]);
  });

  test('begins by itself in the foreground when its grace period ends', async () => {
    const { harness, line } = await open(onTestFinished);
    const done = await harness.expunge([...line, '--grace', '2s']);
    const { startsAt, state } = await harness.onlyRun();
    expect([done.code, state]).toEqual([0, 'completed']);
    expect(Math.min(...harness.arrivals) + performance.timeOrigin).toBeGreaterThanOrEqual(startsAt);
    expect(harness.sandbox.seen).toHaveLength(ids.length);
  });

  test('is retried, and made by apply, in the foreground as well', async () => {
    const { harness, list, line } = await open(onTestFinished);
    await harness.expunge([...line, '--detach', '--grace', '2h']);
    const { id } = await harness.onlyRun();
    await harness.expunge(['cancel', id, '--yes']);
    const retried = await harness.expunge(['retry', id, '--yes', '--grace', '2s']);
    expect(retried.code, retried.stderr).toBe(0);
    const retry = (await harness.runs()).find(({ retryOf }) => retryOf === id)!;
    const first = Math.min(...harness.arrivals) + performance.timeOrigin;
    expect([retry.startsAt - retry.acceptedAt, retry.startsAt <= first]).toEqual([2_000, true]);
    const plan = await harness.plan([list, '--resource', 'annotations']);
    const startAt = Date.now() + 3_000;
    const sent = harness.arrivals.length;
    const apply = ['apply', plan, '--yes', '--start-at', new Date(startAt).toISOString()];
    expect((await harness.expunge(apply)).code).toBe(3); // the ids are gone
    expect(harness.arrivals[sent]! + performance.timeOrigin).toBeGreaterThanOrEqual(startAt);
  });

  test('has a plan that shows the start; the same command again moves nothing, another --start-at does', async () => {
    const { harness, line } = await open(onTestFinished);
    const first = await harness.expunge([...line, '--detach', '--grace', '2h']);
    expect(first.stderr).toContain('Starts    2 h after it is accepted; it can be cancelled until then');
    const { startsAt } = await harness.onlyRun();
    const again = await harness.expunge([...line, '--detach', '--grace', '2h']);
    expect(again.stderr).toMatch(/Starts {4}at \d{4}-\d\d-\d\d \d\d:\d\d UTC/);
    expect(await harness.expunge([...line, '--detach'])).toMatchObject({
      code: 0,
      stderr: expect.stringContaining('(from the first command); it can be cancelled until then'),
    });
    expect((await harness.onlyRun()).startsAt).toBe(startsAt);
    await harness.expunge([...line, '--detach', '--start-at', '2099-01-01T00:00Z']);
    expect((await harness.onlyRun()).startsAt).toBe(Date.parse('2099-01-01T00:00Z'));
  });

  test('and a --stop-at before its start is refused, with nothing written', async () => {
    const { harness, line } = await open(onTestFinished);
    const stopAt = new Date(Date.now() + 60 * minute).toISOString();
    const refused = await harness.expunge([...line, '--detach', '--grace', '2h', '--stop-at', stopAt]);
    expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining('comes before the start of the run') });
    expect(await harness.runs()).toEqual([]);
  });

  test('is retried with the grace period of its run', async () => {
    const { harness, line } = await open(onTestFinished);
    await harness.expunge([...line, '--detach', '--grace', '2h']);
    const { id } = await harness.onlyRun();
    await harness.expunge(['cancel', id, '--yes']);
    expect((await harness.expunge(['retry', id, '--detach', '--yes'])).code).toBe(0);
    const retry = (await harness.runs()).find(({ retryOf }) => retryOf === id)!;
    expect(retry.startsAt - retry.acceptedAt).toBe(120 * minute);
  });

  test('made by apply has the longer of two grace periods: of the plan, and of the place where it is applied', async () => {
    const { harness, list } = await open(onTestFinished);
    const plan = await harness.plan([list, '--resource', 'annotations', '--grace', '1h']);
    const apply = (EXPUNGE_GRACE: string) =>
      harness.expunge(['apply', plan, '--yes', '--detach'], { env: { EXPUNGE_GRACE } });
    expect(await apply('1min')).toMatchObject({
      code: 4,
      stderr: expect.stringContaining('--grace 1min instead of 1h'),
    });
    expect(await apply('2h')).toMatchObject({ code: 0 });
    const run = await harness.onlyRun();
    expect(run.startsAt - run.acceptedAt).toBe(120 * minute);
  });
});

describe('target grace', () => {
  const setGrace = (harness: Awaited<ReturnType<typeof open>>['harness'], time: string) =>
    harness.expunge(['target', 'grace', time, '--reason', 'time to object'], { env: { EXPUNGE_USER: 'ana' } });

  test('is a minimum that no command undercuts, shown in plan and status, and on record', async () => {
    const { harness, line } = await open(onTestFinished);
    expect(await setGrace(harness, '10min')).toMatchObject({ code: 0 });
    const made = await harness.expunge([...line, '--detach', '--grace', '1min']);
    expect(made.stderr).toContain('Starts    10 min after it is accepted, the minimum of this target');
    expect(made.stderr).toContain('grace of at least 10 min by ana: time to object');
    const run = await harness.onlyRun();
    expect(run.startsAt - run.acceptedAt).toBe(10 * minute);
    await harness.expunge([...line, '--detach', '--grace', 'none']);
    expect((await harness.onlyRun()).startsAt).toBe(run.startsAt);
    const status = await harness.expunge(['status', '--audit']);
    expect(status.stdout).toContain('grace of at least 10 min by ana: time to object');
    expect(status.stdout).toMatch(/grace 10min +ana +time to object/);
    expect(JSON.parse((await harness.expunge(['status', '--json'])).stdout)).toMatchObject({
      min_grace: { grace: '10min', who: 'ana' },
    });
  });

  test('holds in the foreground, and not for runs that are made after it was ended', async () => {
    const { harness, line } = await open(onTestFinished);
    await setGrace(harness, '2h');
    const running = harness.start([...line, '--json']);
    const { id, startsAt, acceptedAt } = await harness.runIs('running', ({ state }) => state === 'running');
    expect(startsAt - acceptedAt).toBe(120 * minute);
    await harness.expunge(['cancel', id, '--yes']);
    expect((await running.ended).code).toBe(3);
    expect(await setGrace(harness, 'none')).toMatchObject({ code: 0 });
    expect(await harness.expunge(line)).toMatchObject({ code: 0 });
    expect(harness.sandbox.seen).toHaveLength(ids.length);
  });

  test.each(['', 'soon', '10ms'])('refuses %j as a time', async (time) => {
    const { harness } = await open(onTestFinished);
    expect(await harness.expunge(['target', 'grace', time])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('"none" ends it'),
    });
  });
});
