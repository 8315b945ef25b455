import { expect, onTestFinished, test } from 'vitest';
import { addressFromUrl } from '../../src/redis/address.ts';
import { openCluster } from '../support/cluster.ts';
import { until } from '../support/processes.ts';
import { openLedgerOn } from '../support/redis.ts';

test('a command whose primary hangs is not sent again when its connection is given up', async () => {
  const cluster = await openCluster(onTestFinished);
  for (const { redis } of cluster.nodes) await redis.config('SET', 'cluster-replica-no-failover', 'yes');
  const redis = await openLedgerOn(addressFromUrl(cluster.url, true));
  onTestFinished(() => redis.disconnect());
  const isGivenUp = new Promise((resolve) => redis.once('-node', resolve));
  await cluster.strike('counter', 'SIGSTOP');
  await expect(redis.incr('counter')).rejects.toThrow('Command timed out');
  await isGivenUp;
  cluster.wake();
  const counted = await until('the server answers again', () => redis.get('counter').catch(() => null));
  expect(counted).toBe('1'); // it was executed from the buffer of the server
});
