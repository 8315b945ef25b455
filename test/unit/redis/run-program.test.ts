import { expect, test } from 'vitest';
import { runProgram } from '../../../src/redis/run-program.ts';

test('a program that is run for the private Redis gets none of our secrets', async () => {
  const env = { REDIS_URL: 'redis://:canary@localhost', EXPUNGE_TOKEN: 'canary', DOCKER_HOST: 'unix:///docker.sock' };
  const { stdout } = await runProgram('/usr/bin/env', [], { env, deadlineMs: 5_000 });
  expect(stdout).toBe('DOCKER_HOST=unix:///docker.sock\n');
});
