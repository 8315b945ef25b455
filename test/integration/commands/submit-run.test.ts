import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { settings } from '../../../src/config/settings.ts';
import { listRuns } from '../../../src/ledger/list-runs.ts';
import { readRun } from '../../../src/ledger/run.ts';
import { invoke } from '../../support/command.ts';
import { openTestRedis, testRedisUrl } from '../../support/redis.ts';
import { forgetTarget } from '../../support/redis-keys.ts';

// Runs are left to workers of which there are none: nothing is sent anywhere.

let folder: string;
let list: string;
let baseUrl: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'expunge-test-'));
  list = join(folder, 'list.txt');
  baseUrl = `http://127.0.0.1:9/${randomUUID()}`;
  writeFileSync(list, 'a-1\na-2\n');
});
afterEach(async () => {
  await forgetTarget(baseUrl);
  rmSync(folder, { recursive: true, force: true });
});

const env = { EXPUNGE_TOKEN: 'abc', REDIS_URL: testRedisUrl() };
const submit = (...more: string[]) =>
  invoke(['run', list, '--resource', 'views', '--base-url', baseUrl, '--state-dir', folder, '--detach', ...more], env)
    .ended;

/** The runs that were made. */
async function runs() {
  const redis = await openTestRedis();
  const own = (await listRuns(redis)).filter((run) => run.baseUrl === baseUrl);
  const found = await Promise.all(own.map(({ id }) => readRun(redis, id)));
  redis.disconnect();
  return found;
}

test.each([
  ['stopFile', 'stop'],
  ['maxConcurrency', '3'],
  ['requestTimeoutMs', '500'],
  ['retryDelays', '1s,1s,1s,1s,1s'],
  ['unreachableTimeoutMs', '1'],
  ['strictConnections', ''],
  ['proxy', 'http://proxy.example:3128'],
  ['caFile', 'ca.pem'],
] as const)('run --detach refuses %s as a flag: it would count for nothing', async (name, value) => {
  const flag = `--${settings[name].flag}`;
  await expect(submit('--yes', flag, ...(value === '' ? [] : [value]))).rejects.toMatchObject({
    code: 'USAGE',
    message: expect.stringContaining(`${flag}: with --detach, workers send the requests`),
  });
});

test('the same command with another --keep changes how long the run is kept, and without it nothing', async () => {
  const keeps = async () => (await runs()).map((run) => run?.keepMs);
  await submit('--yes', '--keep', '2h');
  expect(await keeps()).toEqual([7_200_000]);
  await submit('--yes', '--keep', '90d');
  await submit('--yes');
  expect(await keeps()).toEqual([90 * 86_400_000]);
});

test('a --confirm of another number than 0 refuses an empty list', async () => {
  writeFileSync(list, '');
  await expect(submit('--confirm', '100')).rejects.toThrow('--confirm 100: expected 0');
  expect(await runs()).toEqual([]);
  expect(await submit('--confirm', '0')).toBe(0);
});

test('of two commands that make a run of one list at the same time, one is refused where its --on-status is another', async () => {
  const ways = ['404=failed', '404=halt'];
  const ended = await Promise.allSettled(ways.map((onStatus) => submit('--yes', '--on-status', onStatus)));
  const winner = ended.findIndex(({ status }) => status === 'fulfilled');
  expect(ended.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
  expect((await runs()).map((run) => run?.onStatus)).toEqual([ways[winner]]);
});

test('a --burst without a rate is refused by run, worker and schedule add', async () => {
  const words = '--burst needs a rate, and there is none';
  await expect(submit('--yes', '--burst', '3')).rejects.toThrow(words);
  await submit('--yes', '--rate', '5/s');
  await submit('--yes', '--burst', '3');
  expect((await runs()).map((run) => run?.burst)).toEqual([3]);
  for (const verb of [['schedule', 'add', 'nightly'], ['worker']]) {
    const { ended } = invoke([...verb, '--base-url', baseUrl, '--state-dir', folder, '--burst', '3'], env);
    await expect(ended).rejects.toThrow(words);
  }
});
