import type { TargetState } from '../limiter/read-target.ts';
import { type Resource, resources } from '../model/resource.ts';
import { type RedisClient, readValues } from '../redis/client.ts';
import { keys } from '../redis/keys.ts';
import { resourceOfChunk } from './manifest.ts';

/**
 * The limiters that admit what a run works on now. Where each resource has its own and one of them is held, they are those of the resources of
 * its open chunks, or of what it comes back to next; else all. Only reads, and nothing where nothing is held.
 */
export async function limitersFor(
  redis: RedisClient,
  run: string,
  targets: readonly TargetState[],
): Promise<readonly TargetState[]> {
  if (!targets.some(({ scope, hold, outage }) => scope !== 'all' && (hold?.kind === 'retry_after' || outage !== null)))
    return targets;
  const sent = await readResources(redis, run);
  const others: readonly string[] = sent.size === 0 ? [] : resources.filter((resource) => !sent.has(resource));
  return targets.filter(({ scope }) => !others.includes(scope));
}

const looksAt = 16; // chunks: more are hardly ever open

async function readResources(redis: RedisClient, run: string): Promise<ReadonlySet<Resource>> {
  const open = await redis.hkeys(keys.open(run));
  const chunks = open.length > 0 ? open : await redis.zrange(keys.later(run), 0, String(looksAt - 1));
  const numbers = chunks.slice(0, looksAt).map(Number);
  const manifests = await readValues(
    redis,
    numbers.map((n) => keys.manifest(run, n)),
  );
  return new Set(numbers.flatMap((n, i) => (manifests[i] ? [resourceOfChunk(n, manifests[i])] : [])));
}
