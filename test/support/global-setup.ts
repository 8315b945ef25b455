import type { TestProject } from 'vitest/node';
import { ExpungeError } from '../../src/errors.ts';
import { resolveRedis } from '../../src/redis/private/open.ts';
import { makeStateDir, removeStateDir, urlOf } from './redis.ts';

/**
 * One Redis for all tests of a project: TEST_REDIS_URL where it is set, else a private one, found in the same way as by
 * the command and removed at the end. Where no Redis can be had the tests fail with the ways out.
 */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const given = process.env.TEST_REDIS_URL;
  if (given) {
    project.provide('redisUrl', given);
    return async () => {};
  }
  const stateDir = makeStateDir();
  project.provide('redisUrl', await startRedis(stateDir));
  return () => removeStateDir(stateDir);
}

async function startRedis(stateDir: string): Promise<string> {
  try {
    const env = { ...process.env, REDIS_URL: '' };
    const address = await resolveRedis({ stateDir, allowPlaintextRedis: false }, env, () => {});
    address.stay?.presence.disconnect();
    return urlOf(address);
  } catch (error) {
    await removeStateDir(stateDir);
    if (!(error instanceof ExpungeError)) throw error;
    throw new Error(`the tests need Redis: ${error.message}\n→ ${error.next} (tests read TEST_REDIS_URL instead)`);
  }
}
