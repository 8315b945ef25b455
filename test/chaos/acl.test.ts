import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'vitest';
import { findBroken } from '../support/checker.ts';
import { openGuardedRedis } from '../support/guarded-redis.ts';
import { makeLogin, refusals } from '../support/login.ts';
import { openOwnRedis } from '../support/own-redis.ts';
import { never, until } from '../support/processes.ts';
import { annotations, makeIds, openScene } from '../support/scene.ts';
import { hasOpenssl } from '../support/tls.ts';
import { useEverything } from '../support/use-everything.ts';

/** A scene whose Redis knows it by the login of the README, and the connection of the administrator. */
async function openGuarded(atEnd: Parameters<typeof openScene>[0], ids: string[], ...more: string[]) {
  const own = await openOwnRedis(atEnd);
  const admin = own.connect();
  const folder = mkdtempSync(join(tmpdir(), 'expunge-login-'));
  atEnd(async () => rmSync(folder, { recursive: true }));
  const redis = await makeLogin([admin], folder, own.url, ...more);
  return { admin, scene: await openScene(atEnd, { objects: annotations(ids), latencyMs: 20 }, redis) };
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
    const { admin, scene } = await openGuarded(onTestFinished, ids, '-client|list', '-client|setname');
    const run = scene.expunge(['run', scene.list(ids), '--resource', 'annotations', '--yes', '--detach']);
    expect(await run.ended, run.stderr).toMatchObject({ code: 0 });
    expect(run.stderr).toContain('this Redis does not say whether a worker of this target is alive (CLIENT LIST)');
    expect(await refusals(admin)).toContainEqual(expect.stringMatching(/^command client/));
    await scene.worker();
    await scene.runIs('completed', ({ state }) => state === 'completed');
  });

  test('stops everything when a right is taken away in the middle, and loses nothing', async ({
    expect,
    onTestFinished,
  }) => {
    const ids = makeIds('t', 1_000);
    const { admin, scene } = await openGuarded(onTestFinished, ids);
    const worker = await scene.worker([], { EXPUNGE_MAX_CONCURRENCY: '8' });
    const args = ['run', scene.list(ids), '--resource', 'annotations', '--yes', '--detach'];
    await scene.expunge(args).ended;
    await until('the run is in the middle', () => scene.arrivals.length > 100);
    await admin.acl('SETUSER', 'expunge', '-evalsha', '-eval');
    const at = performance.now();
    await never('a request after a second', () => scene.arrivals.at(-1)! - at > 1_000, 2_000);
    expect(scene.arrivals.length).toBeLessThan(ids.length);
    expect(worker.stderr).toContain('the login lacks the permission for eval');
    await admin.acl('SETUSER', 'expunge', '+evalsha', '+eval');
    const run = await scene.runIs('completed', ({ state }) => state === 'completed', 60_000);
    expect(run.counts.deleted + run.counts.gone_unconfirmed).toBe(ids.length);
    expect(await findBroken({ ...scene, run, resource: 'annotations', ids, bystanders: [] })).toBeNull();
  });
});
