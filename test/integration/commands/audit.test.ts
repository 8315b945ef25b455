import { describe, expect, test } from 'vitest';
import { type Harness, openHarness } from '../../support/harness.ts';
import { annotations, makeIds } from '../../support/ids.ts';

const ids = makeIds('a', 30);
const ana = { EXPUNGE_USER: 'ana' };

async function call(harness: Harness, ...args: string[]) {
  const running = harness.start(args, ana);
  expect(await running.ended, running.stderr).toMatchObject({ code: 0 });
  return running;
}

const lines = (text: string) => text.trimEnd().split('\n');
const objects = (text: string) => lines(text).map((line) => JSON.parse(line));

describe.concurrent('the audit trail', () => {
  test('has every action with who and why, is shown by status, and outlives the run in part', async ({
    onTestFinished,
  }) => {
    const harness = await openHarness(onTestFinished, { objects: annotations(ids) });
    await call(
      harness,
      'run',
      harness.list(ids),
      '--resource',
      'annotations',
      '--yes',
      '--detach',
      '--reason',
      'OPS-1',
    );
    const { id } = await harness.onlyRun();
    await call(harness, 'pause', id, '--reason', 'release window');
    await call(harness, 'rate', id, '50/s', '--reason', 'slower');
    await call(harness, 'resume', id, '--expect-absent', '--reason', 'release is out');
    await call(harness, 'stop-all', '--reason', 'they call us');
    await call(harness, 'cancel', id, '--yes', '--reason', 'wrong list');

    const short = (await call(harness, 'status', id)).stdout;
    expect(short).toContain('submitted by ana, because: OPS-1');
    expect(short).toContain(`4 earlier actions: expunge status ${id} --audit`);
    expect(
      lines(short)
        .slice(-3)
        .map((line) => line.trim().slice(25)),
    ).toEqual(['resume    ana  release is out', 'stop-all  ana  they call us', 'cancel    ana  wrong list']);
    const whole = objects((await call(harness, 'status', id, '--audit', '--json')).stdout);
    expect(whole.at(-1)).toMatchObject({ type: 'summary', state: 'cancelled' });
    expect(whole.slice(0, -1).map(({ type, who, by, action, reason }) => [type, who, by, action, reason])).toEqual([
      ['audit', 'ana', 'operator', 'submit', 'OPS-1'],
      ['audit', 'ana', 'operator', 'start', ''],
      ['audit', 'ana', 'operator', 'pause', 'release window'],
      ['audit', 'ana', 'operator', 'rate', 'slower'],
      ['audit', 'ana', 'operator', 'expect-absent', 'release is out'],
      ['audit', 'ana', 'operator', 'start', 'release is out'],
      ['audit', 'ana', 'operator', 'stop-all', 'they call us'],
      ['audit', 'ana', 'operator', 'cancel', 'wrong list'],
    ]);
    expect(lines((await call(harness, 'status', id, '--audit')).stdout).slice(-8)[0]).toMatch(/submit +ana +OPS-1$/);

    await call(harness, 'runs', 'remove', id, '--yes', '--reason', 'a trial');
    const target = await call(harness, 'status');
    expect(target.stdout).toContain('Stopped for all runs of this target by ana: they call us. Resume with');
    expect(target.stdout).toMatch(new RegExp(`remove ${id} +ana +a trial`));
    const told = objects((await call(harness, 'status', '--json', '--audit')).stdout);
    expect(told.map(({ type, action }) => [type, action])).toEqual([
      ['audit', 'stop-all'],
      ['audit', 'remove'],
      ['target', undefined],
    ]);
    expect(told.at(-1)).toMatchObject({ target: harness.sandbox.url, stop: { who: 'ana', reason: 'they call us' } });
  });
});
