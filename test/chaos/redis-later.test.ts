import { symlinkSync } from 'node:fs';
import { describe, test } from 'vitest';
import { startRun } from '../support/fleet.ts';
import { openHarness } from '../support/harness.ts';
import { annotations, makeIds } from '../support/ids.ts';
import { openOwnRedis } from '../support/own-redis.ts';
import { openProbes } from '../support/probes.ts';
import { type Running, until } from '../support/processes.ts';

const ids = makeIds('l', 200);

/** The reasons a worker gave why it waits. */
function waits({ stderr }: Running): string[] {
  const lines = stderr.split('\n').slice(0, -1);
  return lines
    .map((line) => JSON.parse(line))
    .filter(({ msg }) => msg === 'waiting for Redis')
    .map(({ reason }) => reason);
}

describe.concurrent('a worker that is started before its Redis', () => {
  test('waits, tells probes why, and works once it is there', async ({ expect, onTestFinished }) => {
    const own = await openOwnRedis(onTestFinished);
    const harness = await openHarness(onTestFinished, { objects: annotations(ids) }, own);
    const later = `${harness.stateDir}-later.sock`;
    const worker = harness.start(['worker', '--http', '0'], { REDIS_URL: `unix://${later}` });
    const probes = await openProbes(worker);
    await until('it says that it waits', () => waits(worker).length > 0);
    expect(worker.stderr).toContain(`"redis":"unix://${later}"`);
    expect(waits(worker)).toEqual(['no such socket']);
    expect((await probes.get('/healthz')).status).toBe(200);
    const { status, checks } = await probes.readiness();
    expect(status).toBe(503);
    expect(checks).toMatchObject({
      process: { ok: false, words: 'starting' },
      redis: { ok: false, words: 'no connection' },
    });
    const scrape = await probes.scrape();
    expect(scrape.value('expunge_redis_up')).toBe(0);
    expect(scrape.faults).toEqual([]);
    symlinkSync(own.url.replace('unix://', ''), later);
    await until('it is ready', () => worker.stderr.includes('"ready"'));
    await startRun(harness, ids, ['--detach']);
    const run = await harness.runIs('completed', ({ state }) => state === 'completed');
    expect(run.counts.deleted).toBe(ids.length);
    expect(waits(worker)).toEqual(['no such socket']);
  });

  test.for([
    ['that nobody has started', 'unix:///nowhere/redis.sock', /^no such socket$/],
    ['whose name nobody knows yet', 'rediss://redis.invalid:6379', /^(no such host|its host name cannot be resolved)$/],
  ] as const)(
    'waits for one %s, and ends with 0 when it is told to',
    async ([, url, reason], { expect, onTestFinished }) => {
      const harness = await openHarness(onTestFinished);
      const worker = harness.start(['worker'], { REDIS_URL: url });
      await until('it says that it waits', () => waits(worker).length > 0);
      expect(waits(worker)[0]).toMatch(reason);
      worker.signal('SIGTERM');
      expect(await worker.ended).toMatchObject({ code: 0 });
    },
  );

  test('waits for one that hangs, and says so after a while', async ({ expect, onTestFinished }) => {
    const own = await openOwnRedis(onTestFinished);
    process.kill(own.pid, 'SIGSTOP');
    const harness = await openHarness(onTestFinished);
    const worker = harness.start(['worker'], { REDIS_URL: own.url });
    await until('it says that it waits', () => waits(worker).length > 0);
    process.kill(own.pid, 'SIGCONT');
    await until('it is ready', () => worker.stderr.includes('"ready"'));
    worker.signal('SIGTERM');
    expect((await worker.ended).code).toBe(0);
  });

  test('does not wait for one that refuses its login, alone or under a supervisor: exit code 6', async ({
    expect,
    onTestFinished,
  }) => {
    const own = await openOwnRedis(onTestFinished, 'right');
    const harness = await openHarness(onTestFinished);
    const env = { REDIS_URL: own.url.replace('right', 'canary-wrong') };
    const [alone, supervised] = [[], ['--workers', '2']].map((args) => harness.spawn(['worker', ...args], env));
    expect((await alone!.ended).code).toBe(6);
    expect(alone!.stderr).toContain('WRONGPASS');
    expect((await supervised!.ended).code).toBe(6);
    expect(supervised!.stderr).toContain('a worker cannot run, stopping all workers');
    expect(alone!.stderr + supervised!.stderr).not.toContain('canary');
  });
});

test.concurrent('all other commands give a Redis a few seconds, and end with 6 and what to do next', async ({
  expect,
  onTestFinished,
}) => {
  const harness = await openHarness(onTestFinished);
  const env = { REDIS_URL: 'unix:///nowhere/redis.sock' };
  const run = await harness.run([harness.list(ids), '--resource', 'annotations', '--yes'], { env });
  expect(run.code).toBe(6);
  expect(run.stderr).toContain('error: Redis at unix:///nowhere/redis.sock: no such socket\n');
  expect(run.stderr).toContain('check REDIS_URL and that Redis runs; the same command resumes');
});
