import { chmodSync, existsSync, mkdirSync, rmSync, symlinkSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { withThrowawayState } from '../../../../src/redis/private/throwaway.ts';

const dead = 2 ** 30; // above every process id

test('removes what an ended process left, but nothing that another user could have put there', async ({
  onTestFinished,
}) => {
  const [own, open, link] = ['a1', 'a2', 'a3'].map((end) =>
    join(tmpdir(), `expunge-rehearsal-${hostname()}-${dead}-${process.pid}${end}`),
  ) as [string, string, string];
  onTestFinished(() => [own, open, link].forEach((path) => void rmSync(path, { recursive: true, force: true })));
  mkdirSync(own, { mode: 0o700 });
  mkdirSync(open);
  chmodSync(open, 0o777);
  symlinkSync(open, link);
  await withThrowawayState(async () => {});
  expect([own, open].map((path) => existsSync(path))).toEqual([false, true]);
  expect(existsSync(link)).toBe(true);
});
