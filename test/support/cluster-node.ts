import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import type { ServerProgram } from '../../src/redis/route.ts';
import { storeArguments } from '../../src/redis/server-process.ts';

/** A server of a cluster; `redis` speaks to it alone. */
export type ClusterNode = {
  readonly port: number;
  readonly child: ChildProcess;
  readonly redis: Redis;
  /** Killed, or made to hang. */
  isStruck: boolean;
};

const nodeTimeoutMs = 2_000;
const busOffset = 10_000;

export function startNode({ path, env }: ServerProgram, folder: string, port: number): ClusterNode {
  const dir = join(folder, `${port}`);
  mkdirSync(dir);
  const cluster = ['--cluster-enabled', 'yes', '--cluster-node-timeout', `${nodeTimeoutMs}`];
  const quick = ['--repl-diskless-sync-delay', '0', '--cluster-replica-validity-factor', '0'];
  const place = ['--port', `${port}`, '--bind', '127.0.0.1', '--dir', dir, '--logfile', join(dir, 'log')];
  const child = spawn(path, [...place, ...cluster, ...quick, ...storeArguments], { env, stdio: 'ignore' });
  const redis = new Redis({ port, commandTimeout: 10_000, replyMapping: 'legacy' });
  redis.on('error', () => {}); // it starts, or was killed
  return { port, child, redis, isStruck: false };
}

export async function endNode({ child, redis }: ClusterNode): Promise<void> {
  redis.disconnect();
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  child.kill('SIGKILL'); // ends a stopped process, too
  await ended;
}

/** Ports that are free together with those of the cluster's own bus, below those that the system gives away. */
export async function freePorts(count: number): Promise<number[]> {
  const ports = new Set<number>();
  while (ports.size < count) {
    const port = 11_000 + Math.floor(Math.random() * 11_000);
    if ((await isFree(port)) && (await isFree(port + busOffset))) ports.add(port);
  }
  return [...ports];
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer().listen(port, '127.0.0.1');
  try {
    await once(server, 'listening');
    return true;
  } catch {
    return false;
  } finally {
    server.close();
  }
}
