import { describe, test } from 'vitest';
import { isDoubtful, isSettled } from '../../src/ledger/cell.ts';
import { startRun } from '../support/fleet.ts';
import { type Harness, openHarness } from '../support/harness.ts';
import { annotations, makeIds } from '../support/ids.ts';
import { type Running, until } from '../support/processes.ts';
import { promised } from '../support/size.ts';

// The ends of `ended` wait for the children as well: they hold the same stderr.

const ids = makeIds('c', 4_000);
const objects = annotations(ids);
const settings = { EXPUNGE_MAX_CONCURRENCY: '16' };
const promisedMs = promised(12_000);

type Line = { worker?: number; pid: number; msg: string; code?: number };

function linesOf({ stderr }: Running): Line[] {
  return stderr
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line));
}

/** What the workers have said so far that they are ready. */
function ready(parent: Running): Line[] {
  return linesOf(parent).filter(({ msg }) => msg === 'ready');
}

async function openCrew(harness: Harness, size: number): Promise<Running> {
  const parent = harness.spawn(['worker', '--workers', `${size}`], settings);
  await until('all workers are ready', () => ready(parent).length === size);
  return parent;
}

async function msFrom(at: number, parent: Running): Promise<[ms: number, code: number | null]> {
  const { code } = await parent.ended;
  return [performance.now() - at, code];
}

describe.concurrent('several workers under one parent', () => {
  test('are named in the log, replaced when they die, and drain together', async ({ expect, onTestFinished }) => {
    const harness = await openHarness(onTestFinished, { objects, latencyMs: 100 });
    const parent = await openCrew(harness, 2);
    const first = ready(parent);
    expect(first.map(({ worker }) => worker).toSorted()).toEqual([1, 2]);
    expect(new Set(first.map(({ pid }) => pid)).size).toBe(2);
    await startRun(harness, ids, ['--detach']);
    await until('they are busy', () => harness.arrivals.length > 100);
    const victim = first.find(({ worker }) => worker === 2)!;
    process.kill(victim.pid, 'SIGKILL');
    const heir = await until('there is another', () => ready(parent)[2]);
    expect(heir.worker).toBe(2);
    expect(linesOf(parent).filter(({ msg }) => msg.startsWith('a worker exited unexpectedly'))).toMatchObject([
      { worker: 2, signal: 'SIGKILL', code: null },
    ]);
    const at = performance.now();
    parent.signal('SIGTERM');
    expect(await msFrom(at, parent)).toEqual([expect.toSatisfy((ms) => ms < promisedMs), 0]);
    expect(linesOf(parent).filter(({ msg }) => msg === 'stopped')).toHaveLength(2);
    expect(harness.sandbox.executed.size).toBeLessThan(ids.length);
  });

  test('leave nothing on its way when their parent is killed', async ({ expect, onTestFinished }) => {
    const harness = await openHarness(onTestFinished, { objects, latencyMs: 100 });
    const parent = await openCrew(harness, 2);
    await startRun(harness, ids, ['--detach']);
    await until('they are busy', () => harness.arrivals.length > 100);
    const at = performance.now();
    parent.signal('SIGKILL');
    expect(await msFrom(at, parent)).toEqual([expect.toSatisfy((ms) => ms < promisedMs), null]);
    const cells = (await harness.cells()).flat();
    expect(cells.filter(isSettled)).toHaveLength(harness.sandbox.counts.requests);
    expect(cells.filter((cell) => !isSettled(cell) && (isDoubtful(cell) || (cell >> 4) % 2 === 1))).toEqual([]);
  });

  test('are gone at once after a second signal, also while requests hang', async ({ expect, onTestFinished }) => {
    const harness = await openHarness(onTestFinished, { objects, faults: { hang: 1 } });
    const parent = await openCrew(harness, 2);
    await startRun(harness, ids, ['--detach']);
    await until('requests hang', () => harness.arrivals.length >= 2);
    parent.signal('SIGTERM');
    await until('it says that it stops', () => parent.stderr.includes('"stopping"'));
    const at = performance.now();
    parent.signal('SIGTERM');
    expect(await msFrom(at, parent)).toEqual([expect.toSatisfy((ms) => ms < promised(1_000)), 143]);
  });

  test('end together with 5 when the credentials are refused', async ({ expect, onTestFinished }) => {
    const harness = await openHarness(onTestFinished, { objects });
    const refused = {
      EXPUNGE_TOKEN_URL: harness.sandbox.tokenUrl,
      EXPUNGE_CLIENT_ID: harness.sandbox.client.id,
      EXPUNGE_CLIENT_SECRET: 'another',
      EXPUNGE_TOKEN: undefined,
    };
    const parent = harness.spawn(['worker', '--workers', '2'], refused);
    const { code } = await parent.ended;
    expect(code).toBe(5);
    expect(parent.stderr).toContain('a worker cannot run, stopping all workers');
    expect(parent.stderr).not.toContain('a worker exited unexpectedly');
  });
});
