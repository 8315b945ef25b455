import { describe, test } from 'vitest';
import type { FaultKind } from '../../../src/sandbox/fault-kinds.ts';
import { type AtEnd, type Harness, openHarness } from '../../support/harness.ts';
import { annotations, makeIds } from '../../support/ids.ts';
import { never } from '../../support/processes.ts';

const ids = makeIds('b', 400);
const env = { EXPUNGE_MAX_CONCURRENCY: '8' };
const underWay = 3 * (4 * 8 + 8); // a window and what is on the wire, of each worker

/** Three workers, and an API that answers 409 for these ids, which fails them. */
async function openThree(atEnd: AtEnd, refused: readonly string[]): Promise<Harness> {
  const script = (_resource: unknown, id: string): FaultKind | null => (refused.includes(id) ? 'status-409' : null);
  const harness = await openHarness(atEnd, { objects: annotations(ids), latencyMs: 5, faults: { script } });
  for (let n = 0; n < 3; n++) await harness.worker([], env);
  return harness;
}

async function submit(harness: Harness, list: readonly string[], ...args: string[]): Promise<void> {
  const line = [
    harness.list(list),
    '--resource',
    'annotations',
    '--on-status',
    '409=failed',
    '--expect',
    '409',
    '--detach',
    '--yes',
    ...args,
  ];
  const { code, stderr } = await harness.run(line, { env });
  if (code !== 0) throw new Error(stderr);
}

const sentTo = ({ sandbox }: Harness) =>
  new Set(sandbox.seen.map((path) => decodeURIComponent(path.split('/').at(-1)!)));

describe.concurrent('over three workers', () => {
  test('a canary sends exactly the ids of its rung, and resumed all the others', async ({ expect, onTestFinished }) => {
    const harness = await openThree(onTestFinished, [ids[0]!, ids[5]!, ids[57]!]);
    await submit(harness, ids, '--canary', '1,10,100');
    for (const rung of [1, 10, 100]) {
      const first = new RegExp(`^1 of the first ${rung} ids? failed`);
      const { id, halt } = await harness.runIs(
        `halted at ${rung}`,
        ({ state, reason }) => state === 'halted' && first.test(reason),
      );
      expect(halt).toBe('canary');
      expect(sentTo(harness)).toEqual(new Set(ids.slice(0, rung)));
      expect(harness.sandbox.seen).toHaveLength(rung);
      expect(await harness.expunge(['resume', id])).toMatchObject({ code: 0 });
    }
    const { counts } = await harness.runIs('completed', ({ state }) => state === 'completed');
    expect(counts).toMatchObject({ deleted: 397, failed: 3 });
  });

  test('--max-failures lets as many fail as it says', async ({ expect, onTestFinished }) => {
    const harness = await openThree(onTestFinished, ids.slice(0, 5));
    await submit(harness, ids, '--max-failures', '5');
    const { counts } = await harness.runIs('completed', ({ state }) => state === 'completed');
    expect(counts).toMatchObject({ failed: 5, deleted: 395 });
    expect(harness.sandbox.seen).toHaveLength(400);
  });

  test('--max-failures halts all of them at the next one, and what was under way joins', async ({
    expect,
    onTestFinished,
  }) => {
    const harness = await openThree(onTestFinished, ids);
    await submit(harness, ids, '--max-failures', '5');
    const { halt } = await harness.runIs('halted', ({ state }) => state === 'halted');
    expect(halt).toBe('max_failures');
    const sent = () => harness.sandbox.seen.length;
    await never('more than what was under way is sent', () => sent() > 6 + underWay, 1_500);
    const { counts } = await harness.onlyRun();
    expect(counts).toMatchObject({ deleted: 0, failed: sent() });
    expect(sent()).toBeGreaterThanOrEqual(6);
  });
});
