import { describe, test } from 'vitest';
import { isDoubtful, isMarked, isSettled } from '../../src/ledger/cell.ts';
import { findBrokenIn } from '../support/checker.ts';
import { type AtEnd, type Harness, type HarnessOptions, openHarness } from '../support/harness.ts';
import { annotations, makeIds } from '../support/ids.ts';
import { never, type Running, until } from '../support/processes.ts';
import { promised, sized } from '../support/size.ts';

const ids = makeIds('r', sized(3_000, 10_000));
const objects = annotations(ids);
const aSecondMs = promised(1_000);

function start(harness: Harness): Running {
  const args = ['--resource', 'annotations', '--yes', '--json', '--max-concurrency', '24'];
  return harness.spawn(['run', harness.list(ids), ...args]);
}

/** A run that its command deletes, in the middle. */
async function openRun(atEnd: AtEnd, options: HarnessOptions = {}): Promise<{ harness: Harness; command: Running }> {
  const harness = await openHarness(atEnd, { objects, latencyMs: 40, ...options });
  const command = start(harness);
  await until('the run is in the middle', () => harness.arrivals.length > 500 || stopIfOver(command));
  return { harness, command };
}

function stopIfOver(running: Running): false {
  if (running.isOver) throw new Error(`the command ended: ${running.stderr}`);
  return false;
}

/** The same command again, to the end; what is wrong with the run then, or null. */
async function brokenAfterResume(harness: Harness): Promise<string | null> {
  harness.sandbox.latencyMs = 0;
  const again = start(harness);
  const { code } = await again.ended;
  return code === 0 ? findBrokenIn(harness, ids) : `exit code ${code}: ${again.stderr}`;
}

describe.concurrent('a run that its command deletes', () => {
  /** @invariant command-leads: Nothing of a foreground run is sent without its command, and nothing by workers whose supervisor was killed. */
  test('sends nothing any more when its command is killed, although a worker lives, and the same command resumes', async ({
    expect,
    onTestFinished,
  }) => {
    const { harness, command } = await openRun(onTestFinished);
    await harness.spawnWorker();
    command.signal('SIGKILL');
    expect(await command.ended).toEqual({ code: null, signal: 'SIGKILL' });
    const { length } = harness.arrivals;
    await never('a request arrives', () => harness.arrivals.length > length + 24, 5_000); // those were on their way
    expect(harness.sandbox.executed.size).toBeLessThan(ids.length);
    expect(await brokenAfterResume(harness)).toBeNull();
  });

  /** @invariant command-leads */
  test('sends nothing while its command is frozen, and goes on when it wakes', async ({ expect, onTestFinished }) => {
    const { harness, command } = await openRun(onTestFinished);
    command.signal('SIGSTOP');
    const { length } = harness.arrivals;
    await never('a request arrives', () => harness.arrivals.length > length + 24, 5_000);
    command.signal('SIGCONT');
    expect(await command.ended, command.stderr).toMatchObject({ code: 0 });
    expect(await findBrokenIn(harness, ids)).toBeNull();
  });

  test.for([
    ['SIGINT', 130],
    ['SIGTERM', 143],
    ['SIGHUP', 143],
  ] as const)('drains when its command gets %s', async ([signal, exit], { expect, onTestFinished }) => {
    const { harness, command } = await openRun(onTestFinished);
    const at = performance.now();
    command.signal(signal);
    expect(await command.ended, command.stderr).toMatchObject({ code: exit });
    expect(performance.now() - at).toBeLessThan(promised(3_000));
    expect(await harness.onlyRun()).toMatchObject({ state: 'paused', by: 'interrupt' });
    const cells = (await harness.cells()).flat();
    expect(cells.filter(isSettled)).toHaveLength(harness.sandbox.counts.requests);
    expect(cells.filter((cell) => isMarked(cell) || (isDoubtful(cell) && !isSettled(cell)))).toEqual([]);
    expect(await brokenAfterResume(harness)).toBeNull();
  });

  test('is gone at once after a second Ctrl-C, also while requests hang', async ({ expect, onTestFinished }) => {
    const harness = await openHarness(onTestFinished, { objects, faults: { hang: 1 } });
    const command = start(harness);
    await until('requests hang', () => harness.arrivals.length >= 2 || stopIfOver(command));
    command.signal('SIGINT');
    await until('it says that it stops', () => command.stderr.includes('Stopping: '));
    const at = performance.now();
    command.signal('SIGINT');
    expect(await command.ended).toMatchObject({ code: 130 });
    expect(performance.now() - at).toBeLessThan(aSecondMs);
  });

  test('halts with 5 when the API refuses the token', async ({ expect, onTestFinished }) => {
    const { harness, command } = await openRun(onTestFinished);
    harness.sandbox.faults = { 'status-401': 1 };
    expect(await command.ended, command.stderr).toMatchObject({ code: 5 });
    expect(await harness.onlyRun()).toMatchObject({ state: 'halted', halt: 'credentials' });
  });
});
