import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'vitest';
import { findBroken } from '../support/checker.ts';
import { openCluster } from '../support/cluster.ts';
import { openGuardedRedis } from '../support/guarded-redis.ts';
import { type AtEnd, openHarness } from '../support/harness.ts';
import { annotations, makeIds } from '../support/ids.ts';
import { clusterRights, makeLogin, refusals } from '../support/login.ts';
import { openOwnRedis } from '../support/own-redis.ts';
import { until } from '../support/processes.ts';
import { isFull } from '../support/size.ts';
import { hasOpenssl } from '../support/tls.ts';
import { useEverything } from '../support/use-everything.ts';

/** A harness whose Redis knows it by the login of the README, and the connection of the administrator. */
async function openGuarded(atEnd: AtEnd, ids: string[], ...more: string[]) {
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
    const run = await harness.run([harness.list(ids), '--resource', 'annotations', '--yes', '--detach']);
    expect(run.code, run.stderr).toBe(0);
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
    await harness.run([harness.list(ids), '--resource', 'annotations', '--yes', '--detach']);
    await until('the run is in the middle', () => harness.arrivals.length > 100);
    await admin.acl('SETUSER', 'expunge', '-evalsha', '-eval');
    await until('no request comes any more', () => performance.now() - harness.arrivals.at(-1)! > 1_000);
    expect(harness.arrivals.length).toBeLessThan(ids.length);
    expect(worker.stderr).toContain('the login lacks the permission for eval');
    await admin.acl('SETUSER', 'expunge', '+evalsha', '+eval');
    const run = await harness.runIs('completed', ({ state }) => state === 'completed');
    expect(run.counts.deleted + run.counts.gone_unconfirmed).toBe(ids.length);
    expect(await findBroken({ ...harness, run, resource: 'annotations', ids, bystanders: [] })).toBeNull();
  });
});

if (isFull) {
  test.skipIf(!hasOpenssl())(
    '50,000 ids, two workers, one of them killed: TLS, a password, and the login of the README',
    async ({ expect, onTestFinished }) => {
      const redis = await openGuardedRedis(onTestFinished);
      const { broken, run, seconds } = await useEverything({
        atEnd: onTestFinished,
        redis,
        ids: 50_000,
        kill: true,
      });
      console.log(`${run.rows} ids in ${seconds.toFixed(0)} s behind TLS: ${JSON.stringify(run.counts)}`);
      expect(broken).toBeNull();
      expect(await redis.refusals()).toEqual([]);
    },
  );

  test('3,000 ids, two workers, one of them killed: a cluster, and the login of the README with what it adds for one', async ({
    expect,
    onTestFinished,
  }) => {
    const { url, nodes } = await openCluster(onTestFinished);
    const admins = nodes.map(({ redis }) => redis);
    const redis = await makeLogin(admins, nodes[0]!.server.folder, url, ...clusterRights());
    const { broken } = await useEverything({ atEnd: onTestFinished, redis, ids: 3_000, kill: true });
    expect(broken).toBeNull();
    expect((await Promise.all(admins.map(refusals))).flat()).toEqual([]);
  });
}
