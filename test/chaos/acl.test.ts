import { expect, test } from 'vitest';
import { openGuardedRedis } from '../support/guarded-redis.ts';
import { hasOpenssl } from '../support/tls.ts';
import { useEverything } from '../support/use-everything.ts';

test.skipIf(!hasOpenssl())(
  'all that the command does is allowed to the login of the README, behind TLS',
  async ({ onTestFinished }) => {
    const redis = await openGuardedRedis(onTestFinished);
    const { broken } = await useEverything({ atEnd: onTestFinished, redis, ids: 2_000, kill: false, perSecond: 800 });
    expect(broken).toBeNull();
    expect(await redis.refusals()).toEqual([]);
  },
);
