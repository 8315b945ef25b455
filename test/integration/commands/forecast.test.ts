import { existsSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { type AtEnd, openHarness } from '../../support/harness.ts';

const list = ['old.txt', '--resource', 'annotations'];
const ids = Array.from({ length: 40 }, (_, n) => `a-${String(n + 1).padStart(6, '0')}`);

async function open(atEnd: AtEnd) {
  const harness = await openHarness(atEnd, { objects: { annotations: 100, views: 0 } });
  harness.file('old.txt', `${ids.join('\n')}\n`);
  return harness;
}

const dryRun = ['run', ...list, '--dry-run'];

test('a dry run and a plan show the limit, the stop, and how long the limit holds the list back', async ({
  onTestFinished,
}) => {
  const harness = await open(onTestFinished);
  await harness.expunge(['target', 'limit', '25/day', '--reason', 'as agreed']);
  await harness.expunge(['stop-all', '--reason', 'they call us']);
  for (const args of [dryRun, ['plan', ...list]]) {
    const { code, stdout, stderr } = await harness.expunge([...args, '--json']);
    expect([code, stderr]).toEqual([0, expect.stringContaining('  Limits    limit 25 a day, 0 used; by ')]);
    expect(stderr).toMatch(
      /Takes +at least 1 d, longer if the API is slower; waits for a quota; ends \w{3} \d\d:\d\d /,
    );
    expect(stderr).toMatch(/Waits +Stopped for all runs of this target by .*they call us/);
    expect(stderr).not.toContain('Redis was not asked');
    const { expected } = JSON.parse(stdout);
    expect(expected).toMatchObject({ seconds: null, seconds_from: 86_400, because: ['waits for a quota'] });
    expect(Date.parse(expected.ends_from)).toBeGreaterThan(Date.now() + 86_000_000);
  }
  expect(harness.sandbox.seen).toEqual([]);
});

test('a dry run shows the run of before, an overlap, the limit and what was learned, and writes nothing', async ({
  onTestFinished,
}) => {
  const harness = await open(onTestFinished);
  await harness.run([...list, '--yes']);
  await harness.expunge(['target', 'limit', '1/s', '--reason', 'as agreed']);
  await harness.run([...list, '--limit', '30', '--yes', '--max-failures', '1', '--detach']);
  const before = await harness.redis.keys(`*${harness.target.fp}*`);
  const { stdout } = await harness.expunge(dryRun, { env: { EXPUNGE_TOKEN: '' } });
  expect(stdout).toMatch(/Previous +run \S+ of the same list completed on .*: 40 deleted/);
  expect(stdout).toMatch(/Overlaps +run \S+ of .*old.txt has 30 ids left/);
  expect(stdout).toMatch(/Limits +limit 1\/s; by .*: as agreed/);
  expect(stdout).toMatch(/Takes +at least 39 s at the 1\/s of the limit of the target/);
  expect((await harness.redis.keys(`*${harness.target.fp}*`)).sort()).toEqual(before.sort());
});

test('a dry run says why Redis was not asked: it is away, or hangs', async ({ onTestFinished }) => {
  const harness = await open(onTestFinished);
  const silent = createServer(() => {}).listen(0, '127.0.0.1');
  onTestFinished(() => void silent.close());
  await new Promise((resolve) => silent.once('listening', resolve));
  const { port } = silent.address() as { port: number };
  for (const url of ['redis://127.0.0.1:1', `redis://127.0.0.1:${port}`, 'http://redis.example.com']) {
    const { code, stderr } = await harness.expunge(dryRun, { env: { REDIS_URL: url } });
    expect([code, stderr]).toEqual([0, expect.stringMatching(/^Redis was not asked: .+$/m)]);
  }
});

test('a dry run starts no private Redis, and says so only where there was one', async ({ onTestFinished }) => {
  const harness = await open(onTestFinished);
  const without = await harness.expunge(dryRun, { env: { REDIS_URL: '' } });
  expect([without.code, without.stderr]).toEqual([0, expect.not.stringContaining('Redis')]);
  expect(existsSync(join(harness.stateDir, 'redis'))).toBe(false);
});

test('a forecast ends no sooner than a limit that is used up lets anything through again', async ({
  onTestFinished,
}) => {
  const harness = await open(onTestFinished);
  const ends = async () => {
    const { stdout } = await harness.expunge([...dryRun, '--json']);
    return Date.parse(JSON.parse(stdout).expected.ends_from);
  };
  await harness.expunge(['target', 'limit', '25/day']);
  await harness.run([...list, '--limit', '25', '--yes']);
  const { stdout } = await harness.expunge(['status', '--json']);
  expect(await ends()).toBeGreaterThanOrEqual(Date.parse(JSON.parse(stdout).limit.until));
  await harness.expunge(['target', 'limit', 'none']);
  expect(await ends()).toBeLessThan(Date.now() + 3_600_000);
});
