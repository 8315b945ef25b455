import { randomBytes } from 'node:crypto';
import { Cluster, type ClusterOptions, Redis, type RedisOptions, SentinelConnector } from 'ioredis';
import type { RedisAddress, RedisLogin } from './address.ts';

/** A connection to one server, a Sentinel set or a cluster. All keys of one command, script or pipeline must share a hash tag. */
export type RedisClient = Redis | Cluster;

/** The start of the name of every connection of this process in CLIENT LIST. */
export const clientName = `expunge:${process.pid}-${randomBytes(4).toString('hex')}`;

const shared = {
  connectTimeout: 2_000,
  enableReadyCheck: true,
  disableClientInfo: true, // not used, and it would need one more right
  retryStrategy: (times: number) => Math.min(100 * times, 1_000),
  // After a failover the old primary answers READONLY: 2 reconnects and sends the command again.
  reconnectOnError: (error: Error) => (error.message.startsWith('READONLY') ? 2 : false),
} satisfies RedisOptions;

// While a primary hangs, its connection stays open. Only polling shows that another primary has taken over.
const sharedByCluster = {
  clusterRetryStrategy: shared.retryStrategy,
  slotsRefreshInterval: 1_000, // ioredis has it off by default
  slotsRefreshTimeout: 2_000,
  dnsLookup: (host, done) => done(null, host), // TLS verifies the name, so an address must not replace it
} satisfies ClusterOptions;

// The types declare the overridden members as private.
const parent = SentinelConnector as unknown as new (
  options: unknown,
) => {
  failoverDetector: { cleanup(): void } | null;
  connect(...args: unknown[]): Promise<unknown>;
  connectToSentinel(...args: unknown[]): Redis;
};

/** The part of ioredis that finds the primary through sentinels and follows it after a failover, with two bugs of ioredis fixed. */
export class OurSentinelConnector extends parent {
  /**
   * The failover detector of the lost connection still listens. Without the cleanup, an event during the search for the next primary would end the
   * search, and the client for good.
   */
  override connect(...args: unknown[]): Promise<unknown> {
    this.failoverDetector?.cleanup();
    this.failoverDetector = null;
    return super.connect(...args);
  }

  /**
   * Connections to sentinels have no listener for errors, so the errors of an unreachable sentinel would be written to the console. The commands that
   * fail report them.
   */
  override connectToSentinel(...args: unknown[]): Redis {
    return super.connectToSentinel(...args).on('error', () => {});
  }
}

// After a failover, the former primary keeps accepting writes until it learns of it. So failovers are detected through the sentinels.
const failover = {
  Connector: OurSentinelConnector as never, // typed for options of any kind
  failoverDetector: true,
  sentinelRetryStrategy: (times: number) => Math.min(50 * times, 500),
  sentinelReconnectStrategy: () => 2_000, // so that a sentinel that was away reports the next failover
  sentinelCommandTimeout: 1_000, // a sentinel that hangs is skipped
  disconnectTimeout: 500, // a primary that hangs does not close its connections
} satisfies RedisOptions;

/** The number of hash slots of a cluster. */
export const clusterSlots = 16_384;

/** The servers that hold data: the only server, or every primary of a cluster. */
export function dataServers(redis: RedisClient): Redis[] {
  return isCluster(redis) ? redis.nodes('master') : [redis];
}

export function isCluster(redis: RedisClient): redis is Cluster {
  return redis instanceof Cluster;
}

/** Returns the options to connect and reconnect to an address. Each reconnect reads its login files again. */
export function toRedisOptions({ options, login }: RedisAddress): RedisOptions {
  // ioredis calls this as a method of the options that it connects with next, including the options of a duplicate.
  function retryStrategy(this: RedisOptions, times: number): number {
    Object.assign(this, login?.());
    return shared.retryStrategy(times);
  }
  return { ...options, ...shared, retryStrategy, ...(options.sentinels ? failover : {}) };
}

/** Opens a client for the address. It connects and reconnects by itself. */
export function openClient(address: RedisAddress, options: RedisOptions): RedisClient {
  // Without a delay "on failover", a command is never sent again after its connection broke, as it may have run.
  if (address.nodes) return openCluster(address, options, { enableOfflineQueue: false, retryDelayOnFailover: 0 });
  return new Redis({ ...options, replyMapping: 'legacy' }); // the default, which the types want spelled out
}

/** Opens a client for the cluster that the nodes of the address belong to. */
export function openCluster({ nodes, login }: RedisAddress, options: RedisOptions, more: ClusterOptions = {}) {
  const { retryStrategy, ...redisOptions } = options;
  const cluster = new Cluster(nodes!, {
    ...sharedByCluster,
    ...more,
    redisOptions: { ...redisOptions, replyMapping: 'legacy' },
  });
  cluster.on('error', () => {}); // without a listener it would be written to the console
  return login ? followLogin(cluster, login) : cluster;
}

/**
 * Keeps the login of a cluster client current. The client makes a new connection instead of reconnecting, so each connection, also of a duplicate,
 * gets the login from the files before it connects.
 */
function followLogin(cluster: Cluster, login: () => RedisLogin): Cluster {
  cluster.on('+node', ({ options }: Redis) => Object.assign(options, login()));
  const duplicate = cluster.duplicate.bind(cluster);
  cluster.duplicate = (...args) => followLogin(duplicate(...args), login);
  return cluster;
}

/** Reads the clock of the server that holds this key, in ms since 1970: in a cluster each server has its own. */
export async function readClock(redis: RedisClient, key: string): Promise<number> {
  const time = (await redis.eval("return redis.call('TIME')", 1, key)) as unknown[];
  return Number(time[0]) * 1_000 + Number(time[1]) / 1_000;
}

/**
 * Reads the values of keys of one run, null for a missing one, in one round trip. Uses a GET for each key: while a slot of a cluster moves to another
 * server, MGET would fail until all keys have moved.
 */
export function readValues(redis: RedisClient, keys: readonly string[]): Promise<(Buffer | null)[]> {
  return Promise.all(keys.map((key) => redis.getBuffer(key)));
}
