import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { runProgram, worksIn } from '../../../../src/redis/private/server-process.ts';

test('a pid is only known to be the server where the system says in which folder it works', () => {
  const processes = mkdtempSync(join(tmpdir(), 'expunge-test-'));
  onTestFinished(() => rmSync(processes, { recursive: true }));
  for (const pid of ['7', '8', '9']) mkdirSync(join(processes, pid));
  symlinkSync('/srv/.expunge/redis', join(processes, '7', 'cwd'));
  symlinkSync('/home/ana', join(processes, '8', 'cwd'));
  const known = () => [7, 8, 9].map((pid) => worksIn(pid, '/srv/.expunge/redis', processes));
  expect(known()).toEqual([true, false, null]); // a system that tells nothing of 9
  mkdirSync(join(processes, 'self'));
  expect(known()).toEqual([true, false, false]); // one that tells of every process: 9 is over
});

describe('run program', () => {
  test('a program that is run for the private Redis gets none of our secrets', async () => {
    const env = { REDIS_URL: 'redis://:canary@localhost', EXPUNGE_TOKEN: 'canary', DOCKER_HOST: 'unix:///docker.sock' };
    const { stdout } = await runProgram('/usr/bin/env', [], { env, deadlineMs: 5_000 });
    expect(stdout).toBe('DOCKER_HOST=unix:///docker.sock\n');
  });
});
