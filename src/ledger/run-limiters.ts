import type { TargetState } from '../limiter/read-target.ts';
import type { Resource } from '../model/resource.ts';
import { type RedisClient, readValues } from '../redis/client.ts';
import { keys } from '../redis/keys.ts';
import { resourceOfChunk } from './manifest.ts';

/**
 * Finds the limiters that admit the run's present work. If each resource has its own limiter and one is held: the limiters of the resources in its
 * open chunks, or in the chunks that it comes back to next. Otherwise all limiters. Only reads, and reads nothing if no limiter is held.
 */
export async function limitersFor(
  redis: RedisClient,
  run: string,
  targets: readonly TargetState[],
): Promise<readonly TargetState[]> {
  if (!targets.some(({ scope, hold, outage }) => scope !== 'all' && (hold?.kind === 'retry_after' || outage !== null)))
    return targets;
  const sent = await readResources(redis, run);
  return targets.filter(({ scope }) => sent.size === 0 || scope === 'all' || sent.has(scope));
}

const looksAt = 16; // chunks: more are hardly ever open

async function readResources(redis: RedisClient, run: string): Promise<ReadonlySet<Resource>> {
  const open = await redis.hkeys(keys.open(run));
  const chunks = open.length > 0 ? open : await redis.zrange(keys.deferred(run), 0, String(looksAt - 1));
  const numbers = chunks.slice(0, looksAt).map(Number);
  const manifests = await readValues(
    redis,
    numbers.map((n) => keys.manifest(run, n)),
  );
  return new Set(numbers.flatMap((n, i) => (manifests[i] ? [resourceOfChunk(n, manifests[i])] : [])));
}
