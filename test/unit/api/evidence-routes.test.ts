import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { evidenceRoutes } from '../../../src/api/evidence-routes.ts';
import type { Call } from '../../../src/api/route.ts';
import { encodeBlock } from '../../../src/ledger/manifest.ts';
import { schemaVersion } from '../../../src/ledger/run.ts';

const route = evidenceRoutes.find(({ path }) => path === '/runs/{run}/failures')!;

const row = { file: 0, line: 2, resource: 'views', id: 'v 1', outcome: 'rejected', code: 'whitespace', first: null };
const block = encodeBlock({ n: 0, rows: [row as never] });

/** A live run with a rejected row. Each reading of its rows ends when the test calls it, with the row or without any. */
function openFailures() {
  vi.useFakeTimers({ toFake: ['performance'] });
  onTestFinished(() => void vi.useRealTimers());
  const run = {
    schema: String(schemaVersion),
    state: 'running',
    rows: '1',
    rejected: '1',
    blocks: '1',
    files: '["a"]',
  };
  const readings: ((bytes?: Buffer | null) => void)[] = [];
  const redis = {
    hgetall: async () => ({ ...run, tallied: '1', isExpiring: '1' }),
    getBuffer: () => new Promise((resolve) => readings.push((bytes = block) => resolve(bytes))),
  };
  const call = { deps: { session: { redis } }, params: { run: 'r' } } as unknown as Call;
  const look = async () => {
    const answer = route.handle(call) as Promise<{ items: { code: string; count: number }[] }>;
    answer.catch(() => {});
    for (let turn = 0; turn < 20; turn++) await Promise.resolve();
    return { answer };
  };
  return { run, readings, look };
}

const found = { items: [expect.objectContaining({ code: 'whitespace', count: 1 })] };

describe('the failures of a run', () => {
  it('are read once for all who ask while they are read, however long that takes, and for five seconds more', async () => {
    const { readings, look } = openFailures();
    const first = await look();
    vi.advanceTimersByTime(60_000);
    const second = await look();
    expect(readings).toHaveLength(1);
    readings[0]!();
    expect(await Promise.all([first.answer, second.answer])).toEqual([found, found]);
    vi.advanceTimersByTime(4_900);
    expect(await (await look()).answer).toEqual(found);
    vi.advanceTimersByTime(200);
    await look();
    expect(readings).toHaveLength(2);
  });

  it('are read anew once the run has ended: its numbers are final then', async () => {
    const { run, readings, look } = openFailures();
    const live = await look();
    run.state = 'completed';
    const ended = await look();
    expect(readings).toHaveLength(2);
    for (const read of readings) read();
    expect(await Promise.all([live.answer, ended.answer])).toEqual([found, found]);
    vi.advanceTimersByTime(60_000);
    expect(await (await look()).answer).toEqual(found);
    expect(readings).toHaveLength(2);
  });

  it('are read anew where they could not be read', async () => {
    const { readings, look } = openFailures();
    const { answer } = await look();
    readings[0]!(null);
    await expect(answer).rejects.toThrow('block 0');
    await look();
    expect(readings).toHaveLength(2);
  });
});
