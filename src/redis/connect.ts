import { Cluster, type RedisOptions } from 'ioredis';
import { systemCode } from '../system-errors.ts';
import type { RedisAddress } from './address.ts';
import { parseInfo } from './boot-check.ts';
import {
  clientName,
  clusterSlots,
  dataServers,
  isCluster,
  openClient,
  openCluster,
  type RedisClient,
  toRedisOptions,
} from './client.ts';
import { describeRedisError, findRootError, unreachable } from './errors.ts';
import { oneShot, readGreeting, watchFirstError } from './probe.ts';
import { describeSentinelError } from './sentinels.ts';

/**
 * Opens the connection of the ledger. Commands fail at once while Redis is away, and after 3 s while it hangs, and are never sent twice. It
 * reconnects by itself. Await `ready` before the first command. `onConnectionError` gets a text that is safe to log.
 */
export function connectLedger(
  address: RedisAddress,
  onConnectionError: (words: string) => void = () => {},
): RedisClient {
  const redis = openClient(address, {
    ...toRedisOptions(address),
    connectionName: `${clientName}:ledger`,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0, // with autoResendUnfulfilledCommands off, any other value leaves cut commands pending
    autoResendUnfulfilledCommands: false, // a timed-out command may have run, so it must not run again
    reconnectOnError: (error) => (error.message.startsWith('READONLY') ? 1 : false), // reconnects to find the primary; the caller gets the error
    commandTimeout: 3_000,
    socketTimeout: 5_000,
  });
  redis.on('error', (error) => onConnectionError(describeRedisError(error)));
  return redis;
}

/** The argument with which BullMQ connects: options, or for a cluster one client that all queues of a process share. */
export type QueueConnection = RedisOptions | Cluster;

/**
 * Opens the connection for BullMQ: its commands wait until Redis is back, and a connection that hangs is dropped after 15 s. Close it after all
 * queues. The client of a cluster connects at once: if BullMQ had to connect it, one failure would be final.
 */
export function openQueueConnection(address: RedisAddress): QueueConnection {
  const options = queueOptions(address);
  return address.nodes ? openCluster(address, options) : options;
}

/** Closes what `openQueueConnection` opened. */
export function closeQueueConnection(connection: QueueConnection): void {
  if (connection instanceof Cluster) connection.disconnect();
}

function queueOptions(address: RedisAddress): RedisOptions {
  return {
    ...toRedisOptions(address),
    connectionName: `${clientName}:queue`,
    maxRetriesPerRequest: null,
    socketTimeout: 15_000, // blocking calls last up to 10 s, so a commandTimeout would break them
  };
}

/** Waits until the connection is usable. Throws UNREACHABLE at the deadline, or at once if waiting does not help. */
export async function ready(redis: RedisClient, address: RedisAddress, deadlineMs = 5_000): Promise<void> {
  const first = await firstOutcome(redis, deadlineMs);
  const outcome = first === 'ready' ? await reach(redis) : await describeOutcome(address, first);
  if (outcome === 'ready') return;
  redis.disconnect();
  throw unreachable(address, outcome);
}

const brokenOff = /^connection (reset|closed)|^there is no connection|^no answer in/;

async function describeOutcome(address: RedisAddress, outcome: string): Promise<string> {
  if (address.nodes) return describeClusterError(address);
  if (address.options.sentinels) return (await describeSentinelError(address.options)) || outcome;
  return (brokenOff.test(outcome) && (await readGreeting(address.options))) || outcome;
}

/**
 * Sends a first command to every primary. The client of a cluster connects to a server with its first command, and rejects other commands until it
 * has connected. Returns 'ready', or the reason why it is not. Never throws.
 */
export async function reach(redis: RedisClient): Promise<string> {
  if (!isCluster(redis)) return 'ready';
  const answers = dataServers(redis).map(async (server) => {
    const { host, port } = server.options;
    return server.ping().then(
      () => null,
      (error) => `its primary ${host}:${port}: ${describeRedisError(error)}`,
    );
  });
  return (await Promise.all(answers)).find((reason) => reason !== null) ?? 'ready';
}

function firstOutcome(redis: RedisClient, deadlineMs: number): Promise<string> {
  let words = `no answer in ${deadlineMs / 1000} s; it may be loading its data`;
  return new Promise((resolve) => {
    const end = (outcome: string) => {
      clearTimeout(timer);
      redis.off('ready', onReady).off('error', onError);
      resolve(outcome);
    };
    const onReady = () => end('ready');
    const onError = (error: Error) => {
      words = describeRedisError(error);
      if (isPermanent(findRootError(error))) end(words);
    };
    const timer = setTimeout(() => end(words), deadlineMs);
    redis.on('ready', onReady).on('error', onError);
    if (redis.status === 'ready') end('ready');
  });
}

/** Whether waiting is useless after this error. `isService`: an unknown host name may become known, because the network starts with the service. */
export function isPermanent(error: Error, isService = false): boolean {
  if (isService && systemCode(error) === 'ENOTFOUND') return false;
  if (/^(WRONGPASS|NOAUTH|NOPERM|ERR )/.test(error.message)) return true;
  return /^(ENOTFOUND|EACCES|CERT_|ERR_TLS|ERR_SSL|EPROTO|.*_CERT|UNABLE_TO_)/.test(systemCode(error));
}

/**
 * Finds why the client of a cluster does not become ready, which ioredis does not report. The state of the cluster, as one of its servers reports it,
 * takes precedence over the error of another server.
 */
async function describeClusterError({ nodes = [], options }: RedisAddress): Promise<string> {
  const said = await Promise.all(nodes.map((node) => ask({ ...options, ...node })));
  const words = nodes.map(({ host, port }, n) => `${host}:${port}: ${said[n]!.words}`);
  return words[said.findIndex(({ hasAnswered }) => hasAnswered)] ?? words[0] ?? 'no server is named';
}

async function ask(options: RedisOptions): Promise<{ hasAnswered: boolean; words: string }> {
  const redis = oneShot(options, 'cluster');
  const firstError = watchFirstError(redis);
  try {
    await redis.connect();
    const { cluster_state: state = '?', cluster_slots_ok: served = '?' } = parseInfo(await redis.cluster('INFO'));
    if (state === 'ok') return { hasAnswered: true, words: 'the cluster is well, but does not answer in time' };
    const words = `the cluster is down (state ${state}, ${served} of ${clusterSlots} slots served)`;
    return { hasAnswered: true, words };
  } catch (error) {
    return { hasAnswered: redis.status === 'ready', words: describeRedisError(firstError() ?? error) };
  } finally {
    redis.disconnect();
  }
}
