import { expect, test } from 'vitest';
import { trackWrites } from '../../../src/redis/writes.ts';

const full = new Error("OOM command not allowed when used memory > 'maxmemory'.");
const replica = new Error("READONLY You can't write against a read only replica.");

function follow() {
  const told: string[] = [];
  let now = 0;
  const writes = trackWrites(
    () => now,
    (refused) => told.push(refused),
  );
  const after = (ms: number) => {
    now += ms;
  };
  return { writes, told, after };
}

test('tells once that Redis refuses, again when the reason is another, and when it takes writes again', () => {
  const { writes, told, after } = follow();
  for (let n = 0; n < 20; n++) {
    after(200);
    expect(writes.failed(full)).toBe(true);
  }
  writes.failed(replica);
  after(1_000);
  writes.succeeded();
  writes.succeeded();
  expect(told).toEqual([expect.stringContaining('OOM'), expect.stringContaining('READONLY'), '']);
  expect(writes.rejection).toBe('');
});

test('goes by the last refusal for a second, whatever else is taken meanwhile', () => {
  const { writes, told, after } = follow();
  for (let n = 0; n < 20; n++) {
    writes.failed(full);
    after(100);
    writes.succeeded();
  }
  expect(told).toHaveLength(1);
  expect(writes.rejection).toContain('OOM');
});

test('takes no answer for no refusal, and for no end of one', () => {
  const { writes, after } = follow();
  expect(writes.failed(new Error('Connection is closed.'))).toBe(false);
  expect(writes.rejection).toBe('');
  writes.failed(full);
  after(60_000);
  writes.failed(new Error('Connection is closed.'));
  expect(writes.rejection).toContain('OOM');
});
