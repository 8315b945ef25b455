import { expect, test } from 'vitest';
import { openGuardedRedis } from '../support/guarded-redis.ts';
import { hasOpenssl } from '../support/tls.ts';
import { useEverything } from '../support/use-everything.ts';

test.skipIf(!hasOpenssl())(
  '50,000 ids, two workers, one of them killed: TLS, a password, and the login of the README',
  async ({ onTestFinished }) => {
    const redis = await openGuardedRedis(onTestFinished);
    const { broken, run, seconds } = await useEverything({
      ...{ atEnd: onTestFinished, redis, ids: 50_000, kill: true, perSecond: 5_000 },
    });
    console.log(`${run.rows} ids in ${seconds.toFixed(0)} s behind TLS: ${JSON.stringify(run.counts)}`);
    expect(broken).toBeNull();
    expect(await redis.refusals()).toEqual([]);
  },
);
