import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Redis, type RedisOptions } from 'ioredis';
import { until } from './processes.ts';
import { type RedisProcess, startRedisProcess } from './redis-process.ts';
import { type Certificates, clientOf, tlsArguments } from './tls.ts';

type AtEnd = (task: () => Promise<void>) => void;

/** A primary, two replicas and three sentinels that watch them. They go when the test is over. */
export type SentinelSet = {
  /** REDIS_URL. */
  readonly url: string;
  readonly nodes: readonly RedisProcess[];
  readonly sentinels: readonly RedisProcess[];
  /** The node that the sentinels call the primary. */
  primary(): Promise<RedisProcess>;
  /** Waits until they name another one than this. */
  primaryIsNot(before: RedisProcess): Promise<RedisProcess>;
  /** Has the sentinels make another node the primary while all are well. */
  failOver(): Promise<void>;
};

export type SentinelOptions = {
  password?: string;
  sentinelPassword?: string;
  /** Where everything is to speak TLS. */
  made?: Certificates;
};

const name = 'main';
const downAfterMs = 1_000;

export async function openSentinelSet(atEnd: AtEnd, options: SentinelOptions = {}): Promise<SentinelSet> {
  const { password, sentinelPassword, made } = options;
  const tls = made && clientOf(made);
  const tlsArgs = (port: number) => (made ? tlsArguments(port, made) : []);
  const node = (more: string[]) =>
    startRedisProcess(atEnd, {
      args: (port) => [...nodeArguments(password), ...tlsArgs(port), ...more],
      login: { password, tls },
    });
  const first = await node([]);
  const replicaOf = ['--replicaof', '127.0.0.1', String(first.port)];
  const nodes = [first, ...(await Promise.all([node(replicaOf), node(replicaOf)]))];
  const sentinel = () =>
    startRedisProcess(atEnd, {
      allArgs: (port, folder) => [
        ...[writeConfiguration(folder, port, first.port, options), '--sentinel'],
        ...tlsArgs(port),
      ],
      login: { password: sentinelPassword, tls },
    });
  const sentinels = await Promise.all([sentinel(), sentinel(), sentinel()]);
  const asks = sentinels.map(({ port }) => connect({ port, password: sentinelPassword, tls }));
  atEnd(async () => asks.forEach((ask) => void ask.disconnect()));
  await Promise.all(asks.map((ask) => until('a sentinel knows the others', () => knowsAll(ask)))).catch((error) => {
    throw new Error([...sentinels, ...nodes].map(({ log }) => log.slice(-1_000)).join('\n'), { cause: error });
  });
  let known = first;
  const primary = async () => {
    const port = await namedPort(asks);
    known = nodes.find((node) => node.port === port) ?? known;
    return known;
  };
  const another = async (before: RedisProcess) => {
    const now = await primary();
    return now === before ? null : now;
  };
  return {
    url: `${made ? 'rediss' : 'redis'}+sentinel://${password ? `:${encodeURIComponent(password)}@` : ''}${addresses(sentinels)}/${name}`,
    nodes,
    sentinels,
    primary,
    primaryIsNot: (before) => until('there is another primary', () => another(before)),
    failOver: async () => void (await asks[0]!.call('SENTINEL', 'FAILOVER', name)),
  };
}

function nodeArguments(password: string | undefined): string[] {
  const login = password ? ['--requirepass', password, '--masterauth', password] : [];
  return ['--repl-diskless-sync-delay', '0', ...login];
}

/** Sentinels keep what they learn in it. */
function writeConfiguration(folder: string, port: number, primary: number, options: SentinelOptions): string {
  const path = join(folder, 'sentinel.conf');
  const lines = [
    `port ${port}`,
    `sentinel monitor ${name} 127.0.0.1 ${primary} 2`,
    `sentinel down-after-milliseconds ${name} ${downAfterMs}`,
    `sentinel failover-timeout ${name} 5000`,
    `sentinel parallel-syncs ${name} 2`,
    ...(options.password ? [`sentinel auth-pass ${name} ${options.password}`] : []),
    ...(options.sentinelPassword
      ? [`requirepass ${options.sentinelPassword}`, `sentinel sentinel-pass ${options.sentinelPassword}`]
      : []),
  ];
  const isWritten = existsSync(path) && readFileSync(path, 'utf8').includes(`port ${port}\n`);
  if (!isWritten) writeFileSync(path, `${lines.join('\n')}\n`, { mode: 0o600 });
  return path;
}

function addresses(sentinels: readonly RedisProcess[]): string {
  return sentinels.map(({ port }) => `127.0.0.1:${port}`).join(',');
}

function connect(options: RedisOptions): Redis {
  const redis = new Redis({ ...options, host: '127.0.0.1', replyMapping: 'legacy', commandTimeout: 2_000 });
  redis.on('error', () => {}); // a test may have killed it
  return redis;
}

/** It has found both other sentinels and both replicas, and these have what the primary has. */
async function knowsAll(ask: Redis): Promise<boolean> {
  const [primary, replicas] = await Promise.all(['MASTER', 'REPLICAS'].map((what) => ask.call('SENTINEL', what, name)));
  const linked = (replicas as string[][]).filter((replica) => fieldOf(replica, 'master-link-status') === 'ok');
  return linked.length === 2 && fieldOf(primary as string[], 'num-other-sentinels') === '2';
}

function fieldOf(flat: string[], field: string): string | undefined {
  return flat[flat.indexOf(field) + 1];
}

/** The port that a majority names. */
async function namedPort(asks: readonly Redis[]): Promise<number | null> {
  const named = await Promise.all(
    asks.map((ask) => ask.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', name).catch(() => null) as Promise<string[]>),
  );
  const ports = named.map((address) => Number(address?.[1] ?? 0));
  return ports.find((port) => port > 0 && ports.filter((other) => other === port).length * 2 > ports.length) ?? null;
}
