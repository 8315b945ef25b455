import { randomBytes } from 'node:crypto';
import { Cluster, type ClusterOptions, Redis, type RedisOptions, SentinelConnector } from 'ioredis';
import type { RedisAddress, RedisLogin } from './address.ts';

/** The clock of the server that holds this key, in ms since 1970: in a cluster each server has its own. */
export async function readClock(redis: RedisClient, key: string): Promise<number> {
  const time = (await redis.eval("return redis.call('TIME')", 1, key)) as unknown[];
  return Number(time[0]) * 1_000 + Number(time[1]) / 1_000;
}

/**
 * The values of keys of one run, null for what is missing, in one round trip. Each key by itself: while a slot of a cluster moves to
 * another server, MGET would wait until the last key is there.
 */
export function readValues(redis: RedisClient, keys: readonly string[]): Promise<(Buffer | null)[]> {
  return Promise.all(keys.map((key) => redis.getBuffer(key)));
}

// What we override is private to the types.
const parent = SentinelConnector as unknown as new (
  options: unknown,
) => {
  failoverDetector: { cleanup(): void } | null;
  connect(...args: unknown[]): Promise<unknown>;
  connectToSentinel(...args: unknown[]): Redis;
};

/** How ioredis finds the primary and hears of another one, with two faults of it mended. */
export class OurSentinelConnector extends parent {
  /**
   * The detector of the connection that was lost still listens. What it hears while the next one is sought would end the search, and
   * with it the client, for good.
   */
  override connect(...args: unknown[]): Promise<unknown> {
    this.failoverDetector?.cleanup();
    this.failoverDetector = null;
    return super.connect(...args);
  }

  /**
   * Its connections to the sentinels have no listener for errors: one that is away would be written to the console, again and again.
   * Whoever asks is told by the commands that fail.
   */
  override connectToSentinel(...args: unknown[]): Redis {
    return super.connectToSentinel(...args).on('error', () => {});
  }
}

/** A connection to Redis, whatever set-up is behind it. All keys of one command, script or pipeline must share a hash tag. */
export type RedisClient = Redis | Cluster;

/** Begins the name of every connection of this process, so that others can be told from ours in CLIENT LIST. */
export const clientName = `expunge:${process.pid}-${randomBytes(4).toString('hex')}`;

const shared = {
  connectTimeout: 2_000,
  enableReadyCheck: true,
  disableClientInfo: true, // nobody reads it, and a login would need one right more
  retryStrategy: (times: number) => Math.min(100 * times, 1_000),
  // After a failover the old primary answers READONLY: 2 reconnects and sends the command again.
  reconnectOnError: (error: Error) => (error.message.startsWith('READONLY') ? 2 : false),
} satisfies RedisOptions;

// Where a primary hangs, nothing but looking tells that another one has taken over; a closed connection alone does not.
const sharedByCluster = {
  clusterRetryStrategy: shared.retryStrategy,
  slotsRefreshInterval: 1_000, // off by default
  slotsRefreshTimeout: 2_000,
  dnsLookup: (host, done) => done(null, host), // where TLS looks at the name, an address would not do
} satisfies ClusterOptions;

// A primary that was left behind by a failover keeps taking writes until somebody notices.
const failover = {
  Connector: OurSentinelConnector as never, // typed for options of any kind
  failoverDetector: true,
  sentinelRetryStrategy: (times: number) => Math.min(50 * times, 500),
  sentinelReconnectStrategy: () => 2_000, // so that a sentinel which was away tells of the next failover again
  sentinelCommandTimeout: 1_000, // one that hangs is passed over
  disconnectTimeout: 500, // a primary that hangs does not close its connections
} satisfies RedisOptions;

/** How many slots the keys of a cluster are spread over. */
export const clusterSlots = 16_384;

/** The servers that hold data: one, or every primary of a cluster. */
export function serversOf(redis: RedisClient): Redis[] {
  return isCluster(redis) ? redis.nodes('master') : [redis];
}

export function isCluster(redis: RedisClient): redis is Cluster {
  return redis instanceof Cluster;
}

/** How to reach the address and how to come back to it, with what its files say by then. */
export function optionsOf({ options, login }: RedisAddress): RedisOptions {
  // ioredis calls it as a method of the options that it is going to connect with, those of a duplicate, too.
  function retryStrategy(this: RedisOptions, times: number): number {
    Object.assign(this, login?.());
    return shared.retryStrategy(times);
  }
  return { ...options, ...shared, retryStrategy, ...(options.sentinels ? failover : {}) };
}

/** A client of its own for the address. It connects by itself. */
export function openClient(address: RedisAddress, options: RedisOptions): RedisClient {
  // Without a delay "on failover" a command is never sent again after its connection broke: it may have run.
  if (address.nodes) return openCluster(address, options, { enableOfflineQueue: false, retryDelayOnFailover: 0 });
  return new Redis({ ...options, replyMapping: 'legacy' }); // the default, which the types want spelled out
}

/** A client for the cluster that the nodes of the address belong to. */
export function openCluster({ nodes, login }: RedisAddress, options: RedisOptions, more: ClusterOptions = {}) {
  const { retryStrategy, ...redisOptions } = options;
  const cluster = new Cluster(nodes!, {
    ...sharedByCluster,
    ...more,
    redisOptions: { ...redisOptions, replyMapping: 'legacy' },
  });
  cluster.on('error', () => {}); // else it would be told on the console
  return login ? followLogin(cluster, login) : cluster;
}

/** Its connections are never made a second time, so each gets what the files say before it is made; those of a duplicate, too. */
function followLogin(cluster: Cluster, login: () => RedisLogin): Cluster {
  cluster.on('+node', ({ options }: Redis) => Object.assign(options, login()));
  const duplicate = cluster.duplicate.bind(cluster);
  cluster.duplicate = (...args) => followLogin(duplicate(...args), login);
  return cluster;
}
