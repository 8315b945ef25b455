import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { markDelivered } from '../../../src/ledger/end-run.ts';
import { type Run, readRun } from '../../../src/ledger/run.ts';
import { startTarget, stopTarget } from '../../../src/ledger/steer-target.ts';
import { storedSaying } from '../../../src/limiter/stop.ts';
import { type Target, targetOf } from '../../../src/model/target.ts';
import type { RedisClient } from '../../../src/redis/client.ts';
import { keys } from '../../../src/redis/keys.ts';
import { invoke } from '../../support/command.ts';
import { openTestRedis, testRedisUrl } from '../../support/redis.ts';
import { forgetRun, writeTestRun } from '../ledger/lone-run.ts';

const silence = storedSaying({ stop: null, token: null, run: '' });

let redis: RedisClient;
beforeAll(async () => {
  redis = await openTestRedis();
});
afterAll(() => redis.disconnect());

type AtEnd = (task: () => Promise<void>) => void;

/** A run in a state of its own making: nobody sends anything. */
async function openRun(atEnd: AtEnd, fields: Record<string, string | number> = {}): Promise<Run> {
  const id = await writeTestRun(redis, [2]);
  await redis.hset(keys.run(id), fields);
  const run = (await readRun(redis, id))!;
  atEnd(async () => {
    await redis.unlink(keys.stop(run.fp), keys.targetAudit(run.fp), keys.bounds(run.fp));
    await forgetRun(redis, id);
  });
  return run;
}

/** Exit code, stdout and stderr; what was thrown counts as told. */
async function type(...argv: string[]) {
  const invoked = invoke(argv, { REDIS_URL: testRedisUrl() });
  const [exit, thrown] = await invoked.ended.then(
    (code) => [code, ''],
    (error) => [error.code, `${error.message}\n${error.next}`],
  );
  return { exit, out: invoked.printed(), told: `${invoked.told()}${thrown}` };
}

const ofTarget = ({ baseUrl, account }: Pick<Target, 'baseUrl' | 'account'>) => [
  ...['--base-url', baseUrl],
  ...(account ? ['--account', account] : []),
];

/** The same account by another name of its host, of which nothing is known. */
const misnamed = ({ account }: Run) => targetOf('http://127.0.0.1:10', account);

test('a run that has ended keeps its exit code, whatever `resume` is told', async ({ onTestFinished }) => {
  const gone = { state: 'completed', settled: 2, absent: 2, endedAt: Date.now() };
  const { id } = await openRun(onTestFinished, gone);
  const { exit, out } = await type('resume', id, '--expect-absent', '--json');
  expect([exit, JSON.parse(out)]).toEqual([0, expect.objectContaining({ absent: 2, exit: 3 })]);
  expect((await readRun(redis, id))?.expectAbsent).toBe(false);
});

test('a halted run has another --on-status from its resume on, and keeps it', async ({ onTestFinished }) => {
  const { id } = await openRun(onTestFinished, { state: 'halted', halt: 'forbidden' });
  expect((await type('resume', id, '--on-status', '403=wait')).exit).toBe(0);
  expect((await readRun(redis, id))?.onStatus).toBe('403=wait');
  await type('resume', id);
  expect((await readRun(redis, id))?.onStatus).toBe('403=wait');
  await expect(type('resume', id, '--on-status', '404=wait')).rejects.toMatchObject({ code: 'USAGE' });
});

test('a run that has ended keeps its --on-status', async ({ onTestFinished }) => {
  const { id } = await openRun(onTestFinished, { state: 'completed', settled: 2, deleted: 2, endedAt: Date.now() });
  await type('resume', id, '--on-status', '403=wait');
  expect((await readRun(redis, id))?.onStatus).toBe('');
});

test('a run whose command has ended is not said to go on', async ({ onTestFinished }) => {
  const { id } = await openRun(onTestFinished, { state: 'paused', command: 'cd here && expunge run list' });
  const { exit, told } = await type('resume', id);
  expect([exit, told]).toEqual([0, expect.stringContaining(`Resumed run ${id}, 2 ids left.\n`)]);
  expect(told).not.toMatch(/goes on|continues/);
  expect(told).toContain(
    'The command that deleted it has ended, and no other process has taken over. Resume with: cd here && expunge run list',
  );
});

test('a run whose report is not where it was written is removed only after a question that says so', async ({
  onTestFinished,
}) => {
  const folder = mkdtempSync(join(tmpdir(), 'expunge-actions-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const run = await openRun(onTestFinished, { state: 'completed', settled: 2, deleted: 2, endedAt: Date.now() });
  expect((await type('report', run.id, '--output', '/dev/null')).exit).toBe(0);
  expect((await readRun(redis, run.id))?.reportIn, 'a device keeps nothing').toBe('');

  const file = join(folder, 'report.csv');
  await markDelivered(redis, run, file);
  const asked = await type('runs', 'remove', run.id);
  expect([asked.exit, asked.told]).toEqual([
    'USAGE',
    expect.stringContaining(`Its report is not visible from this machine: ${file}.`),
  ]);
  expect((await type('status', run.id)).out).toContain(`its report was written to ${file}`);

  writeFileSync(file, 'id\n');
  expect((await type('runs', 'remove', run.id)).told).not.toContain('not visible');
  rmSync(file);
  const { exit, told } = await type('runs', 'remove', run.id, '--yes');
  expect([exit, told]).toEqual([
    0,
    expect.stringContaining(`its report was written to ${file}, which is not visible from this machine.`),
  ]);
});

test('`start-all` that finds nothing stopped names what is', async ({ onTestFinished }) => {
  const run = await openRun(onTestFinished, { state: 'running' });
  const stop = { who: 'ana', reason: 'they call us', at: Date.now() };
  await stopTarget(redis, run.fp, stop);
  const { exit, told } = await type('start-all', ...ofTarget(misnamed(run)));
  expect([exit, told]).toEqual([0, expect.stringContaining('warning: still stopped:')]);
  expect(told).toContain(`  expunge start-all --base-url ${run.baseUrl} --account ${run.account}\n`);
  await startTarget(redis, run.fp, stop);
});

test('`stop-all` that reaches an idle process and no run names where runs are live', async ({ onTestFinished }) => {
  // Its base URL is nearer to the idle one than those of other tests' runs, of which only the nearest five are named.
  const run = await openRun(onTestFinished, { state: 'running', baseUrl: 'http://127.0.0.1:11' });
  const idle = misnamed(run);
  onTestFinished(async () => {
    await redis.zrem(keys.targets, JSON.stringify([idle.baseUrl, idle.account]));
    await redis.unlink(keys.processes(idle.fp), keys.stop(idle.fp), keys.targetAudit(idle.fp));
  });
  const [seconds] = (await redis.time()) as unknown as [string];
  await redis.hset(keys.processes(idle.fp), 'p0', `${Number(seconds) * 1_000} ${silence}`);
  const { exit, told } = await type('stop-all', ...ofTarget(idle));
  expect([exit, told]).toEqual([0, expect.stringContaining('It reaches 0 live runs and 1 process.')]);
  expect(told).toContain('warning: live, and not stopped:\n');
  expect(told).toContain(`${run.baseUrl} as account ${run.account}: 1 live run (running)`);
});

test('a target of which nothing is known is told by `status`, and is limited with a warning', async ({
  onTestFinished,
}) => {
  const run = await openRun(onTestFinished, { state: 'running' });
  const wrong = ofTarget(misnamed(run));
  onTestFinished(
    async () => void (await redis.unlink(keys.bounds(misnamed(run).fp), keys.targetAudit(misnamed(run).fp))),
  );
  const { exit, out } = await type('status', ...wrong);
  expect([exit, out]).toEqual([0, expect.stringContaining(`nothing was ever sent there through this Redis`)]);
  const limited = await type('target', 'limit', '5/s', ...wrong);
  expect([limited.exit, limited.told]).toEqual([
    0,
    expect.stringContaining(`warning: nothing was ever sent there through this Redis`),
  ]);
});

test('what is proposed for a run names its account', async ({ onTestFinished }) => {
  const run = await openRun(onTestFinished, { state: 'paused', detached: 1 });
  await stopTarget(redis, run.fp, { who: 'ana', reason: '', at: Date.now() });
  const flags = ofTarget(run).join(' ');
  const { told } = await type('resume', run.id, '--detach');
  expect(told).toContain(`start one: expunge worker ${flags}\n`);
  expect(told).toContain(`Resume with: expunge start-all ${flags}\n`);
  const schedule = await type('schedule', 'pause', 'nightly', ...ofTarget(run));
  expect(schedule.told).toContain(
    `no schedule of ${run.baseUrl} as account ${run.account} is called "nightly".\nexpunge schedule list ${flags} shows them`,
  );
  expect((await type('schedule', 'list', ...ofTarget(run))).out).toContain(`No schedules of ${run.baseUrl} as account`);
});

test('a list that was not written to its end is no ledger that does not add up', async ({ onTestFinished }) => {
  const { id } = await openRun(onTestFinished, { state: 'preparing' });
  const { exit, told } = await type('report', id, '--verify');
  expect([exit, told]).toEqual(['USAGE', expect.stringContaining('its list was not written completely')]);
});
