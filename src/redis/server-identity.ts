import { Cluster, type Redis } from 'ioredis';
import { parseInfo } from './boot-check.ts';
import type { RedisClient } from './client.ts';
import { keys } from './keys.ts';
import { readServerSettings } from './server-settings.ts';

/** The Redis process that holds a run, and the known facts about its data. */
export type ServerIdentity = {
  process: string; // `run_id` of INFO: changes with each start
  history: string; // `master_replid2` of INFO: the process that it took over when it was last promoted; '' = none
  /** Whether all that it has acknowledged survives its end; null if the login is not allowed to read that. */
  isDurable: boolean | null;
  /** Processes that were stopped cleanly and whose data it has completely, latest first. */
  ancestors: readonly string[];
};

/** Finds the process that holds a run now; throws if Redis doesn't answer. `forget` drops the cached answer. */
type ServerIdentityCache = { of(run: string): Promise<ServerIdentity>; forget(run: string): void };

/** Whether one process has everything that the other had acknowledged. Pure; ledger/doubt.lua.ts does the same in Lua. */
export function hasAllOf(now: ServerIdentity, before: ServerIdentity): boolean {
  if (now.process === before.process) return now.history === '' || now.history === before.history;
  if (now.ancestors.includes(before.process)) return true;
  return now.isDurable === true && before.isDurable === true;
}

/**
 * Asks once for each connection, because the process behind it stays the same. With a proxy, or when a slot of a cluster moves, it may be another
 * process; the claim notices that, because it asks in a script. In a cluster it asks again after each refresh of the slots, because another primary
 * may have taken over from a primary that hangs and is still connected.
 */
export function cacheServerIdentity(redis: RedisClient): ServerIdentityCache {
  const known = new Map<string, Promise<ServerIdentity>>();
  const maxKnown = 1_000; // in a cluster; the others are read again
  for (const event of ['close', '-node', 'refresh']) redis.on(event, () => known.clear());
  const whoFor = (run: string) => (redis instanceof Cluster ? run : ''); // one server holds all runs
  return {
    forget: (run) => void known.delete(whoFor(run)),
    of: (run) => {
      const who = whoFor(run);
      if (known.size >= maxKnown) known.clear();
      const asked = known.get(who) ?? readServerIdentity(redis, run);
      known.set(who, asked);
      asked.catch(() => known.get(who) === asked && known.delete(who));
      return asked;
    },
  };
}

/**
 * Reads which process holds a run. In a cluster or a Sentinel set it is never durable, because a replica that takes over may lack the last writes.
 */
export async function readServerIdentity(redis: RedisClient, run: string): Promise<ServerIdentity> {
  if (redis instanceof Cluster) return { ...(await processInSlot(redis, run)), isDurable: false, ancestors: [] };
  const info = parseInfo(await redis.info());
  const process = info.run_id ?? '';
  const [of, ancestors] = await redis.hmget(keys.lineage, 'of', 'ancestors');
  const history = historyOf(info);
  const isCopy = Boolean(redis.options.sentinels) || history !== '';
  return {
    process,
    history,
    isDurable: isCopy ? false : await flushesAlways(redis),
    ancestors: of === process && ancestors ? ancestors.split(' ') : [],
  };
}

async function processInSlot(cluster: Cluster, run: string): Promise<Pick<ServerIdentity, 'process' | 'history'>> {
  const lua = `return redis.call('INFO', 'server') .. redis.call('INFO', 'replication')`;
  const info = parseInfo((await cluster.eval(lua, 1, keys.run(run))) as string);
  return { process: info.run_id ?? '', history: historyOf(info) };
}

/** The history of a process whose data come from a replication, so that the last writes of another process may be missing; zeros mean none. */
function historyOf({ master_replid2: history = '' }: Partial<Record<string, string>>): string {
  return /^0*$/.test(history) ? '' : history;
}

/** Whether each write is flushed before it is acknowledged; null if the login is not allowed to use CONFIG. */
async function flushesAlways(redis: Redis): Promise<boolean | null> {
  const flat = await readServerSettings(redis, '*append*');
  if (flat === null) return null;
  const setting = (name: string) => flat[flat.indexOf(name) + 1];
  const isPaused = setting('no-appendfsync-on-rewrite') !== 'no';
  return setting('appendonly') === 'yes' && setting('appendfsync') === 'always' && !isPaused;
}
