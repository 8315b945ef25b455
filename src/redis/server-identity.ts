import { Cluster, type Redis } from 'ioredis';
import { parseInfo } from './boot-check.ts';
import type { RedisClient } from './client.ts';
import { keys } from './keys.ts';

/** The Redis process that holds a run, as far as this process can know it. */
export type ServerIdentity = {
  process: string; // `run_id` of INFO: another one after each start
  /** Whether everything it acknowledged outlives it; null where its login doesn't let us see. */
  isDurable: boolean | null;
  /** Processes that ended in order and whose data it took over whole, the latest first. */
  ancestors: readonly string[];
};

/** Which process holds a run now; `forget` drops the cached answer. */
export type ServerIdentityCache = { of(run: string): Promise<ServerIdentity>; forget(run: string): void };

/** Whether one process knows all that the other had acknowledged. Pure; ledger/doubt.lua.ts does the same in Lua. */
export function hasAllOf(now: ServerIdentity, before: ServerIdentity): boolean {
  if (now.process === before.process || now.ancestors.includes(before.process)) return true;
  return now.isDurable === true && before.isDurable === true;
}

/**
 * Asks once for each connection: as long as it stands there is the same process behind it. (Behind a proxy, or where a slot of a cluster
 * moves, it may be another one all the same; the claim, which asks inside of Redis, notices.) In a cluster also each time its slots were
 * looked up: another primary may have taken over from one that hangs, whose connection stands for a while yet.
 */
export function cacheServerIdentity(redis: RedisClient): ServerIdentityCache {
  const known = new Map<string, Promise<ServerIdentity>>();
  const knownAtMost = 1_000; // of a cluster; the others are asked for again
  for (const event of ['close', '-node', 'refresh']) redis.on(event, () => known.clear());
  const whoFor = (run: string) => (redis instanceof Cluster ? run : ''); // one server keeps them all
  return {
    forget: (run) => void known.delete(whoFor(run)),
    of: (run) => {
      const who = whoFor(run);
      if (known.size >= knownAtMost) known.clear();
      const asked = known.get(who) ?? readServerIdentity(redis, run);
      known.set(who, asked);
      asked.catch(() => known.get(who) === asked && known.delete(who));
      return asked;
    },
  };
}

/** Which process holds a run. On a Cluster, or behind Sentinel, another machine may take over that has not all of it yet. */
export async function readServerIdentity(redis: RedisClient, run: string): Promise<ServerIdentity> {
  if (redis instanceof Cluster) return { process: await processInSlot(redis, run), isDurable: false, ancestors: [] };
  const info = parseInfo(await redis.info());
  const process = info.run_id ?? '';
  const [of, ancestors] = await redis.hmget(keys.lineage, 'of', 'ancestors');
  return {
    process,
    isDurable: isCopy(redis, info) ? false : await flushesAlways(redis),
    ancestors: of === process && ancestors ? ancestors.split(' ') : [],
  };
}

function processInSlot(cluster: Cluster, run: string): Promise<string> {
  const lua = `return string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')`;
  return cluster.eval(lua, 1, keys.run(run)) as Promise<string>;
}

const ownHistory = /^0+$/;

/** Whether what it holds came, or may come the next time, from another process over the network, whose last writes may not have arrived. */
function isCopy({ options }: Redis, { master_replid2: before = '' }: Partial<Record<string, string>>): boolean {
  return Boolean(options.sentinels) || !ownHistory.test(before);
}

/** CONFIG is asked for once, and may be refused: nothing but trust depends on it. */
async function flushesAlways(redis: Redis): Promise<boolean | null> {
  try {
    const flat = (await redis.config('GET', '*append*')) as string[];
    const setting = (name: string) => flat[flat.indexOf(name) + 1];
    const isPaused = setting('no-appendfsync-on-rewrite') !== 'no';
    return setting('appendonly') === 'yes' && setting('appendfsync') === 'always' && !isPaused;
  } catch (error) {
    if ((error as Error).name === 'ReplyError') return null;
    throw error;
  }
}
