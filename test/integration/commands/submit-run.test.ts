import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { settings } from '../../../src/config/settings.ts';
import { type Run, readRun } from '../../../src/ledger/run.ts';
import type { RunSettings } from '../../../src/ledger/run-rules.ts';
import { invoke } from '../../support/command.ts';
import { listRuns } from '../../support/list-runs.ts';
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
  ['notify', 'https://ops.example.com/hook'],
  ['proxy', 'http://proxy.example:3128'],
  ['caFile', 'ca.pem'],
] as const)('run --detach refuses %s as a flag: it would count for nothing', async (name, value) => {
  const flag = `--${settings[name].flag}`;
  await expect(submit('--yes', flag, value)).rejects.toMatchObject({
    code: 'USAGE',
    message: expect.stringContaining(`${flag}: with --detach, workers send the requests`),
  });
});

/** What the settings of a run become where one of them is given as the first, and then as the other. */
const givenAgain: Record<keyof RunSettings, { first: string[]; other: string[]; becomes: Partial<Run> | 'refused' }> = {
  rate: { first: ['--rate', '5/s'], other: ['9/s'], becomes: { rate: [{ count: 9, perMs: 1_000 }] } },
  keep: { first: ['--keep', '2h'], other: ['90d'], becomes: { keepMs: 90 * 86_400_000 } },
  expectAbsent: { first: [], other: [], becomes: { expectAbsent: true } },
  expect: { first: ['--expect', '403'], other: ['404,403'], becomes: { expect: '403,404' } },
  window: { first: ['--window', '22:00-06:00'], other: ['always'], becomes: { window: '' } },
  grace: { first: ['--grace', '2h'], other: ['3h'], becomes: { graceMs: 10_800_000, startsAt: expect.any(Number) } },
  canary: { first: ['--canary', '1,2'], other: ['3,4'], becomes: 'refused' },
  maxDeletes: { first: ['--max-deletes', '1', '--partial'], other: ['2'], becomes: { maxDeletes: 2, sendable: '' } },
  maxFailures: { first: ['--max-failures', '7'], other: ['2%'], becomes: { maxFailures: '2%' } },
  label: {
    first: ['--label', 'ticket=OPS-1'],
    other: ['ticket=OPS-2,team=ops'],
    becomes: { labels: 'team=ops,ticket=OPS-2' },
  },
  onStatus: { first: ['--on-status', '404=failed'], other: ['404=halt'], becomes: 'refused' },
};

test.each(Object.keys(givenAgain) as (keyof RunSettings)[])(
  'the same command with another value of a setting changes the run in that alone or is refused; without one, in nothing: %s',
  async (name) => {
    const { first, other, becomes } = givenAgain[name];
    const madeRuns = async () => (await runs()).map((run) => ({ ...run, activeMs: 0, activeUntil: 0 }));
    await submit('--yes', ...first);
    const before = (await madeRuns())[0]!;
    const again = submit('--yes', `--${settings[name].flag}`, ...other);
    await (becomes === 'refused' ? expect(again).rejects.toMatchObject({ code: 'USAGE' }) : again);
    await submit('--yes');
    const revision = before.revision! + 1;
    expect(await madeRuns()).toEqual([becomes === 'refused' ? before : { ...before, ...becomes, revision }]);
  },
);

test('a --confirm of another number than 0 refuses an empty list', async () => {
  writeFileSync(list, '');
  await expect(submit('--allow-empty', '--confirm', '100')).rejects.toThrow('--confirm 100: expected 0');
  expect(await runs()).toEqual([]);
  expect(await submit('--allow-empty', '--confirm', '0')).toBe(0);
});

test('of two commands that make a run of one list at the same time, one is refused where its --on-status is another', async () => {
  const ways = ['404=failed', '404=halt'];
  const ended = await Promise.allSettled(ways.map((onStatus) => submit('--yes', '--on-status', onStatus)));
  const winner = ended.findIndex(({ status }) => status === 'fulfilled');
  expect(ended.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
  expect((await runs()).map((run) => run?.onStatus)).toEqual([ways[winner]]);
});
