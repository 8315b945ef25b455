import { Redis } from 'ioredis';
import { until } from './processes.ts';
import { type RedisProcess, startRedisProcess } from './redis-process.ts';

type AtEnd = (task: () => Promise<void>) => void;

/** A server of a cluster; `redis` speaks to it alone. `isStruck`: it was killed, or made to hang. */
export type ClusterNode = { port: number; server: RedisProcess; redis: Redis; isStruck: boolean };

/** A Redis Cluster of real processes, three primaries with a replica each. Goes when the test is over. */
export type TestCluster = {
  readonly url: string;
  readonly nodes: readonly ClusterNode[];
  /** The server that has the slot of this key now, as the living ones see it. */
  primaryOf(key: string): Promise<ClusterNode>;
  /** Moves the slot of this key, with all that is in it, to another primary while clients use it; `halfWay` holds it up in the middle. */
  moveSlotOf(key: string, halfWay?: () => Promise<unknown>): Promise<void>;
  /** Kills the primary that has the slot of this key, or makes it hang. */
  strike(key: string, signal: 'SIGKILL' | 'SIGSTOP'): Promise<void>;
  /** What hangs goes on. */
  wake(): void;
  killAll(): Promise<void>;
  /** Starts all of them again, with what they had on disk. */
  restartAll(): Promise<void>;
};

const primaryCount = 3;
const slotCount = 16_384;
const nodeTimeoutMs = 2_000;

export async function openCluster(atEnd: AtEnd): Promise<TestCluster> {
  const nodes = await Promise.all(Array.from({ length: 2 * primaryCount }, () => startNode(atEnd)));
  await formCluster(nodes);
  const living = () => nodes.filter(({ isStruck }) => !isStruck);
  const slotOf = (key: string) => living()[0]!.redis.cluster('KEYSLOT', key);
  const primaryOf = async (key: string) => ownerOf(living(), await slotOf(key));
  return {
    url: `redis+cluster://${nodes.map(({ port }) => `127.0.0.1:${port}`).join(',')}`,
    nodes,
    primaryOf,
    moveSlotOf: async (key, halfWay = async () => {}) => {
      const slot = await slotOf(key);
      const from = await ownerOf(living(), slot);
      const primaries = await primariesAmong(living());
      const to = primaries.find((node) => node !== from)!;
      await moveKeys(slot, from, to, halfWay);
      const id = await to.redis.cluster('MYID');
      for (const { redis } of [to, ...primaries]) await redis.cluster('SETSLOT', slot, 'NODE', id);
    },
    strike: async (key, signal) => {
      const node = await primaryOf(key);
      node.isStruck = true;
      node.server.signal(signal);
    },
    wake: () => {
      for (const node of nodes.filter(({ isStruck }) => isStruck)) {
        node.server.signal('SIGCONT');
        node.isStruck = false;
      }
    },
    killAll: async () => {
      for (const { server } of nodes) server.signal('SIGKILL');
      await until('all of them are dead', () => nodes.every(({ redis }) => redis.status !== 'ready'));
    },
    restartAll: async () => void (await Promise.all(nodes.map(({ server }) => server.restart()))),
  };
}

async function startNode(atEnd: AtEnd): Promise<ClusterNode> {
  const cluster = ['--cluster-enabled', 'yes', '--cluster-node-timeout', String(nodeTimeoutMs)];
  const quick = ['--repl-diskless-sync-delay', '0', '--cluster-replica-validity-factor', '0'];
  const server = await startRedisProcess(atEnd, { args: () => [...cluster, ...quick] });
  const { port } = server;
  const redis = new Redis({ port, commandTimeout: 10_000, replyMapping: 'legacy' });
  redis.on('error', () => {}); // it may be killed
  atEnd(async () => redis.disconnect());
  return { port, server, redis, isStruck: false };
}

/** The first half becomes primaries with a third of the slots each, the second half their replicas. */
async function formCluster(nodes: readonly ClusterNode[]): Promise<void> {
  const primaries = nodes.slice(0, primaryCount);
  for (const [n, { redis }] of nodes.entries()) {
    await redis.call('CLUSTER', 'SET-CONFIG-EPOCH', n + 1);
    if (n < primaryCount) await redis.cluster('ADDSLOTS', ...slotsOf(n));
    if (n > 0) await nodes[0]!.redis.cluster('MEET', '127.0.0.1', nodes[n]!.port);
  }
  await untilAll(nodes, ({ cluster_known_nodes }) => cluster_known_nodes === `${nodes.length}`);
  const ids = await Promise.all(primaries.map(({ redis }) => redis.cluster('MYID')));
  for (const [n, { redis }] of nodes.slice(primaryCount).entries()) {
    await until('the replica knows its primary', () => redis.cluster('REPLICATE', ids[n]!).catch(() => false));
  }
  await untilAll(nodes, ({ cluster_state }) => cluster_state === 'ok');
  for (const { redis } of nodes.slice(primaryCount)) {
    await until('the replica is in step', async () => (await redis.info('replication')).includes('link_status:up'));
  }
  for (const { redis } of nodes) {
    const servers = async () => (await redis.cluster('SLOTS')).map(([, , ...servers]) => servers.length);
    await until('everybody knows of every replica', async () => (await servers()).every((count) => count === 2));
  }
}

function slotsOf(n: number): number[] {
  const from = Math.floor((n * slotCount) / primaryCount);
  const to = Math.floor(((n + 1) * slotCount) / primaryCount);
  return Array.from({ length: to - from }, (_, i) => from + i);
}

async function untilAll(
  nodes: readonly ClusterNode[],
  condition: (info: Record<string, string>) => boolean,
): Promise<void> {
  for (const { redis } of nodes) {
    await until('the cluster has come together', async () => {
      const lines = (await redis.cluster('INFO')).split('\r\n').map((line) => line.split(':') as [string, string]);
      return condition(Object.fromEntries(lines));
    });
  }
}

/** The way a resharding tool does it, a few keys at a time. */
async function moveKeys(
  slot: number,
  from: ClusterNode,
  to: ClusterNode,
  halfWay: () => Promise<unknown>,
): Promise<void> {
  const [fromId, toId] = await Promise.all([from, to].map(({ redis }) => redis.cluster('MYID')));
  await to.redis.cluster('SETSLOT', slot, 'IMPORTING', fromId!);
  await from.redis.cluster('SETSLOT', slot, 'MIGRATING', toId!);
  for (;;) {
    const keys = (await from.redis.cluster('GETKEYSINSLOT', slot, 10)) as string[];
    if (keys.length === 0) break;
    await from.redis.migrate('127.0.0.1', to.port, '', 0, 5_000, 'KEYS', ...keys);
    await halfWay();
    halfWay = async () => {};
  }
}

async function ownerOf(living: readonly ClusterNode[], slot: number): Promise<ClusterNode> {
  const ranges = await living[0]!.redis.cluster('SLOTS');
  const [, , owner] = ranges.find(([from, to]) => from <= slot && slot <= to)!;
  return living.find(({ port }) => port === owner![1])!;
}

async function primariesAmong(living: readonly ClusterNode[]): Promise<ClusterNode[]> {
  const ranges = await living[0]!.redis.cluster('SLOTS');
  return living.filter(({ port }) => ranges.some(([, , owner]) => owner![1] === port));
}
