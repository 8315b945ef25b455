import { describe, test } from 'vitest';
import type { FaultKind } from '../../src/sandbox/fault-kinds.ts';
import { type AtEnd, type Harness, openHarness } from '../support/harness.ts';
import { annotations, makeIds } from '../support/ids.ts';

const ids = makeIds('b', 1_500);
const settings = { EXPUNGE_MAX_CONCURRENCY: '8', EXPUNGE_RETRY_DELAYS: '50ms,50ms,50ms,50ms,50ms' };

/** Four workers, and an API that answers 409 for these ids. */
async function openFour(atEnd: AtEnd, refused: readonly string[]): Promise<Harness> {
  const script = (_resource: unknown, id: string): FaultKind | null => (refused.includes(id) ? 'status-409' : null);
  const harness = await openHarness(atEnd, { objects: annotations(ids), latencyMs: 5, faults: { script } });
  await Promise.all(Array.from({ length: 4 }, () => harness.spawnWorker(['--rate', '2000/s'], settings)));
  return harness;
}

const run = (harness: Harness, ...args: string[]) =>
  harness.spawn(['run', harness.list(ids), '--resource', 'annotations', '--detach', '--yes', ...args], settings).ended;
const isHalted = ({ state }: { state: string }) => state === 'halted';
const sentTo = ({ sandbox }: Harness) =>
  new Set(sandbox.seen.map((path) => decodeURIComponent(path.slice(path.lastIndexOf('/') + 1))));

describe.concurrent('over four workers', () => {
  test('a canary sends exactly the ids of its rung, and resumed all the others', async ({ expect, onTestFinished }) => {
    const harness = await openFour(onTestFinished, [ids[57]!]);
    expect(await run(harness, '--canary', '1,10,100')).toMatchObject({ code: 0 });
    const { id, halt, reason } = await harness.runIs('halted', isHalted);
    expect([halt, reason]).toEqual(['canary', expect.stringMatching(/^1 of the first 100 ids failed or are unknown/)]);
    expect(sentTo(harness)).toEqual(new Set(ids.slice(0, 100)));
    expect(await harness.spawn(['resume', id]).ended).toMatchObject({ code: 0 });
    const { counts } = await harness.runIs('completed', ({ state }) => state === 'completed');
    expect(counts).toMatchObject({ deleted: 1_499, failed: 1 });
  });

  test('--max-failures halts all of them, and what was under way joins', async ({ expect, onTestFinished }) => {
    const harness = await openFour(onTestFinished, ids);
    expect(await run(harness, '--max-failures', '5', '--on-status', '409=failed')).toMatchObject({ code: 0 });
    const { halt, counts } = await harness.runIs('halted', isHalted);
    expect(halt).toBe('max_failures');
    expect(counts.deleted).toBe(0);
    const underWay = 4 * (4 * 8 + 8); // a window and what is on the wire, of each worker
    expect(sentTo(harness).size).toBeLessThanOrEqual(5 + underWay);
  });

  test('a list of another length than --expect-count sends nothing', async ({ expect, onTestFinished }) => {
    const harness = await openFour(onTestFinished, []);
    expect(await run(harness, '--expect-count', '1600±5%')).toMatchObject({ code: 4 });
    expect(await harness.runs()).toEqual([]);
    expect(await run(harness, '--expect-count', '1600±7%')).toMatchObject({ code: 0 });
    await harness.runIs('completed', ({ state }) => state === 'completed');
    expect(sentTo(harness).size).toBe(1_500);
  });
});
