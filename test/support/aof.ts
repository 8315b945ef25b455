import { readdirSync, statSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { isAlive } from '../../src/child-process.ts';
import { until } from './processes.ts';
import type { RedisProcess } from './redis-process.ts';

/** How much a Redis has written to its append-only file so far. */
export function aofBytes(redis: RedisProcess): number {
  return statSync(aofOf(redis)).size;
}

/** Kills Redis, lets its file end after so many bytes (null: leaves it as it is), as a loss of power may, and starts it again. */
export async function truncateAof(redis: RedisProcess, bytes: number | null): Promise<void> {
  const { pid } = redis;
  redis.signal('SIGKILL');
  await until('Redis is dead', () => !isAlive(pid));
  if (bytes !== null) truncateSync(aofOf(redis), bytes);
  await redis.restart();
}

function aofOf({ folder }: RedisProcess): string {
  const files = join(folder, 'appendonlydir');
  return join(files, readdirSync(files).find((name) => name.endsWith('.incr.aof'))!);
}
