import { mkdirSync, mkdtempSync, rmdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { openStopFile } from '../../../src/worker/stop-file.ts';
import { until } from '../../support/processes.ts';

function watch(path: string) {
  const state = { changes: 0, clock: 0 };
  const file = openStopFile(path, { clock: () => state.clock, now: () => 7, onChange: () => void state.changes++ });
  onTestFinished(() => file.close());
  return { state, file };
}

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'expunge-stop-'));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

describe('a stop file', () => {
  test('stops while it exists, and tells what it says', async () => {
    const path = join(folder(), 'later', 'stop');
    const { state, file } = watch(path);
    file.start();
    await until('it is known that there is none', () => file.stop === null);
    mkdirSync(join(path, '..'));
    writeFileSync(path, `they\n\tcall us ${'!'.repeat(5_000)}`);
    const stop = await until('it stops', () => file.stop);
    expect(stop).toMatchObject({ by: 'file', at: 7, who: expect.stringContaining(path) });
    expect(stop.reason).toMatch(/^they call us !{100,}$/);
    rmSync(path);
    await until('it goes on', () => file.stop === null);
    expect(state.changes).toBe(2);
  });

  test('stops before anybody has looked, and where nobody could look for a second', async () => {
    const path = join(folder(), 'stop');
    const { state, file } = watch(path);
    expect(file.stop).not.toBeNull();
    file.start();
    await until('it is known that there is none', () => file.stop === null);
    state.clock += 1_001;
    expect(file.stop?.reason).toContain('it is unknown');
    await until('somebody has looked again', () => file.stop === null);
    file.close();
    state.clock += 1_001;
    expect(file.stop).toBeNull();
  });

  test('stops without a reason where it cannot be read', async () => {
    const path = join(folder(), 'stop');
    mkdirSync(path);
    const { file } = watch(path);
    file.start();
    expect(await until('it stops', () => file.stop?.reason === '' && file.stop)).toMatchObject({
      by: 'file',
      reason: '',
    });
    rmdirSync(path);
    await until('it goes on', () => file.stop === null);
  });

  test('that nobody named stops nothing', () => {
    expect(openStopFile(null, { clock: () => 0, now: () => 0, onChange: () => {} }).stop).toBeNull();
  });
});
