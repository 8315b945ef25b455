import { expect, test } from 'vitest';
import { openCluster } from '../support/cluster.ts';
import { openGuardedRedis } from '../support/guarded-redis.ts';
import { clusterRights, makeLogin, refusals } from '../support/login.ts';
import { hasOpenssl } from '../support/tls.ts';
import { useEverything } from '../support/use-everything.ts';

test.skipIf(!hasOpenssl())(
  '50,000 ids, two workers, one of them killed: TLS, a password, and the login of the README',
  async ({ onTestFinished }) => {
    const redis = await openGuardedRedis(onTestFinished);
    const { broken, run, seconds } = await useEverything({
      ...{ atEnd: onTestFinished, redis, ids: 50_000, kill: true },
    });
    console.log(`${run.rows} ids in ${seconds.toFixed(0)} s behind TLS: ${JSON.stringify(run.counts)}`);
    expect(broken).toBeNull();
    expect(await redis.refusals()).toEqual([]);
  },
);

test('3,000 ids, two workers, one of them killed: a cluster, and the login of the README with what it adds for one', async ({
  onTestFinished,
}) => {
  const { url, nodes } = await openCluster(onTestFinished);
  const admins = nodes.map(({ redis }) => redis);
  const redis = await makeLogin(admins, nodes[0]!.server.folder, url, ...clusterRights());
  const { broken } = await useEverything({ atEnd: onTestFinished, redis, ids: 3_000, kill: true });
  expect(broken).toBeNull();
  expect((await Promise.all(admins.map(refusals))).flat()).toEqual([]);
});
