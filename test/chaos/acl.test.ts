import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'vitest';
import { findBroken } from '../support/checker.ts';
import { openGuardedRedis } from '../support/guarded-redis.ts';
import { annotations, makeIds, openHarness } from '../support/harness.ts';
import { makeLogin, refusals } from '../support/login.ts';
import { openOwnRedis } from '../support/own-redis.ts';
import { never, until } from '../support/processes.ts';
import { hasOpenssl } from '../support/tls.ts';
import { useEverything } from '../support/use-everything.ts';

/** A scene whose Redis knows it by the login of the README, and the connection of the administrator. */
async function openGuarded(atEnd: Parameters<typeof openHarness>[0], ids: string[], ...more: string[]) {
  const own = await openOwnRedis(atEnd);
  const admin = own.connect();
  const folder = mkdtempSync(join(tmpdir(), 'expunge-login-'));
  atEnd(async () => rmSync(folder, { recursive: true }));
  const redis = await makeLogin([admin], folder, own.url, ...more);
  return { admin, harness: await openHarness(atEnd, { objects: annotations(ids), latencyMs: 20 }, redis) };
}

describe.concurrent('the login of the README', () => {
  test.skipIf(!hasOpenssl())('may do all that the command does, behind TLS', async ({ expect, onTestFinished }) => {
    const redis = await openGuardedRedis(onTestFinished);
    const { broken } = await useEverything({ atEnd: onTestFinished, redis, ids: 600, kill: false });
    expect(broken).toBeNull();
    expect(await redis.refusals()).toEqual([]);
  });

  test('leaves open whether a worker is alive where it may not CLIENT LIST, and does all the rest', async ({
    expect,
    onTestFinished,
  }) => {
    const ids = makeIds('l', 60);
    const { admin, harness } = await openGuarded(onTestFinished, ids, '-client|list', '-client|setname');
    const run = harness.expunge(['run', harness.list(ids), '--resource', 'annotations', '--yes', '--detach']);
    expect(await run.ended, run.stderr).toMatchObject({ code: 0 });
    expect(run.stderr).toContain('this Redis does not say whether a worker of this target is alive (CLIENT LIST)');
    expect(await refusals(admin)).toContainEqual(expect.stringMatching(/^command client/));
    await harness.worker();
    await harness.runIs('completed', ({ state }) => state === 'completed');
  });

  test('stops everything when a right is taken away in the middle, and loses nothing', async ({
    expect,
    onTestFinished,
  }) => {
    const ids = makeIds('t', 1_000);
    const { admin, harness } = await openGuarded(onTestFinished, ids);
    const worker = await harness.worker([], { EXPUNGE_MAX_CONCURRENCY: '8' });
    const args = ['run', harness.list(ids), '--resource', 'annotations', '--yes', '--detach'];
    await harness.expunge(args).ended;
    await until('the run is in the middle', () => harness.arrivals.length > 100);
    await admin.acl('SETUSER', 'expunge', '-evalsha', '-eval');
    const at = performance.now();
    await never('a request after a second', () => harness.arrivals.at(-1)! - at > 1_000, 2_000);
    expect(harness.arrivals.length).toBeLessThan(ids.length);
    expect(worker.stderr).toContain('the login lacks the permission for eval');
    await admin.acl('SETUSER', 'expunge', '+evalsha', '+eval');
    const run = await harness.runIs('completed', ({ state }) => state === 'completed', 60_000);
    expect(run.counts.deleted + run.counts.gone_unconfirmed).toBe(ids.length);
    expect(await findBroken({ ...harness, run, resource: 'annotations', ids, bystanders: [] })).toBeNull();
  });
});
