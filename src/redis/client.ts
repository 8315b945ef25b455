import { Cluster, type ClusterOptions, Redis, type RedisOptions } from 'ioredis';
import type { RedisAddress } from './address.ts';

/** A connection to Redis, whatever set-up is behind it. All keys of one command, script or pipeline must share a hash tag. */
export type RedisClient = Redis | Cluster;

const shared = {
  connectTimeout: 2_000,
  enableReadyCheck: true,
  retryStrategy: (times: number) => Math.min(100 * times, 1_000),
  // After a failover the old primary answers READONLY: 2 reconnects and sends the command again.
  reconnectOnError: (error: Error) => (error.message.startsWith('READONLY') ? 2 : false),
} satisfies RedisOptions;

// Where a primary hangs, nothing but looking tells that another one has taken over; a closed connection alone does not.
const sharedByCluster = {
  clusterRetryStrategy: shared.retryStrategy,
  slotsRefreshInterval: 1_000, // off by default
  slotsRefreshTimeout: 2_000,
} satisfies ClusterOptions;

// A primary that was left behind by a failover keeps taking writes until somebody notices.
const failover = { failoverDetector: true, sentinelRetryStrategy: (times: number) => Math.min(50 * times, 500) };

/** How to reach the address and how to come back to it. */
export function optionsOf({ options }: RedisAddress): RedisOptions {
  return { ...options, ...shared, ...(options.sentinels ? failover : {}) };
}

/** A client of its own for the address. It connects by itself. */
export function openClient({ nodes }: RedisAddress, options: RedisOptions): RedisClient {
  if (nodes) return openCluster(nodes, options, { enableOfflineQueue: false });
  return new Redis({ ...options, replyMapping: 'legacy' }); // the default, which the types want spelled out
}

/** A client for the cluster these nodes belong to. */
export function openCluster(nodes: NonNullable<RedisAddress['nodes']>, options: RedisOptions, more: ClusterOptions) {
  const { retryStrategy, ...redisOptions } = options;
  const cluster = new Cluster(nodes, {
    ...sharedByCluster,
    ...more,
    redisOptions: { ...redisOptions, replyMapping: 'legacy' },
  });
  cluster.on('error', () => {}); // without a listener a node that goes away would end the process
  return cluster;
}
