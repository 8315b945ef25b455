import type { Cluster } from 'ioredis';
import { megabytes } from '../format.ts';
import type { Advice } from '../model/to-type.ts';
import { clusterSlots } from './client.ts';
import { diskAdvice } from './errors.ts';

/** The result of a check: its aspect and state, a text about it, and the advice if it isn't ok. */
export type Finding = {
  aspect: string;
  state: 'ok' | 'warn' | 'fail';
  words: string;
  next: Advice | null;
  facts?: Record<string, number>; // for `--json`
};

export function pass(aspect: string, words: string): Finding {
  return { aspect, state: 'ok', words, next: null };
}

export function warn(aspect: string, words: string, next: Advice): Finding {
  return { aspect, state: 'warn', words, next };
}

export function fail(aspect: string, words: string, next: Advice | null): Finding {
  return { aspect, state: 'fail', words, next };
}

/** The fields of an INFO reply. */
export type Info = Partial<Record<string, string>>;

/** The known facts about a server. */
export type ServerFacts = {
  info: Info;
  /** Its `appendfsync`; null if the login is not allowed to read it. */
  flush: string | null;
  /** The set-up that REDIS_URL names. */
  setUp: 'one server' | 'sentinels' | 'cluster';
};

/** Judges whether a server is fit to store ledgers, with one finding for each aspect. Pure. */
export function evaluateServer(facts: ServerFacts): Finding[] {
  const { info, setUp } = facts;
  return [
    ...checkRole(facts),
    version(info),
    memory(info),
    files(facts),
    ...(setUp === 'one server' ? [] : [replicas(info)]),
  ];
}

function checkRole({ info, setUp }: ServerFacts): Finding[] {
  if (info.cluster_enabled === '1' && setUp !== 'cluster') {
    return [fail('role', 'it is a server of a cluster', 'name the cluster: redis+cluster://… in REDIS_URL')];
  }
  if (info.role !== 'slave' || setUp === 'cluster') return []; // the client of a cluster finds the new primary by itself
  return [fail('role', 'it is a read-only replica', 'name its primary in REDIS_URL, or the sentinels that know it')];
}

function version({ redis_version: redis = '', valkey_version: valkey }: Info): Finding {
  const words = valkey ? `valkey ${valkey}` : `redis ${redis || 'of unknown version'}`;
  if (!isOldVersion(redis)) return pass('version', words);
  return fail('version', `${words} is too old: ${oldestVersion} is needed`, 'use a newer one');
}

const fullAt = 0.8;

function memory({ maxmemory_policy: policy = 'noeviction', maxmemory = '0', used_memory: used = '0' }: Info): Finding {
  const limit = Number(maxmemory);
  const usage = `${megabytes(Number(used))} used${limit > 0 ? ` of ${megabytes(limit)}` : ''}`;
  if (policy !== 'noeviction') {
    const words = `it evicts keys (maxmemory-policy ${policy}), which would lose the ledger`;
    return fail('memory', words, 'set its maxmemory-policy to noeviction');
  }
  if (limit === 0 || Number(used) < limit * fullAt) return pass('memory', `it evicts nothing; ${usage}`);
  return warn('memory', `${usage}; runs stop when it is full`, 'raise its maxmemory: a million ids need about 20 MB');
}

function files({ info, flush }: ServerFacts): Finding {
  const { aof_enabled: aof, aof_last_write_status: written = 'ok', rdb_last_bgsave_status: saved = 'ok' } = info;
  if (written !== 'ok') return fail('files', 'it could not write its append-only file', diskAdvice);
  if (saved !== 'ok') return warn('files', 'it could not write its last snapshot, and may refuse writes', diskAdvice);
  if (aof !== '1') {
    const words = 'it keeps no append-only file (AOF): if it crashes, the record of what was deleted since is lost';
    return warn('files', words, 'set appendonly to yes');
  }
  if (flush === 'no') {
    const words = 'the system flushes its append-only file when it likes: a loss of power may cost half a minute';
    return warn('files', words, 'set appendfsync to everysec, or to always');
  }
  return pass('files', `it keeps an append-only file, ${flushWords[flush ?? ''] ?? unknownFlush}`);
}

const unknownFlush = 'and does not say how often it is flushed: the login is not allowed to use CONFIG';
const flushWords: Record<string, string> = {
  always: 'flushed with each write: no loss of power costs anything',
  everysec: 'flushed each second: a loss of power may cost the last one',
};

function replicas(info: Info): Finding {
  const count = Number(info.connected_slaves ?? 0);
  const states = Array.from({ length: count }, (_, n) => /state=(\w+)/.exec(info[`slave${n}`] ?? '')?.[1]);
  const ready = states.filter((state) => state === 'online').length;
  if (count === 0) return warn('replicas', 'it has no replica that could take over', 'give it one, better two');
  const words = `${ready} of ${count} in sync`;
  return ready < count ? warn('replicas', words, 'see the log of the others') : pass('replicas', words);
}

/** An entry of CLUSTER SLOTS: the first and the last slot, then the servers of these slots, the primary first. */
type SlotRange = [number, number, Server, ...Server[]];
type Server = [host: string, port: number, id: string];

/** Checks whether all slots of a cluster are served. Throws if it doesn't answer. */
export async function inspectCluster(cluster: Cluster): Promise<Finding> {
  return evaluateSlots((await cluster.call('CLUSTER', ['SLOTS'])) as SlotRange[]);
}

/** The same for a reply of CLUSTER SLOTS. Pure. */
export function evaluateSlots(ranges: readonly SlotRange[]): Finding {
  const served = ranges.reduce((sum, [from, to]) => sum + to - from + 1, 0);
  const primaries = new Set(ranges.map(([, , [, , id]]) => id)).size;
  const words = `${served} of ${clusterSlots} slots are served by ${primaries} ${primaries === 1 ? 'primary' : 'primaries'}`;
  if (served === clusterSlots) return pass('cluster', words);
  const next = 'bring the missing servers back, or give their slots to others';
  return fail('cluster', `${words}: runs in the others would stop`, next);
}

/** The oldest Redis that has all commands of expunge and BullMQ. */
export const oldestVersion = '6.2';

/** Whether a version is below `oldestVersion`, or the text is not a version. */
export function isOldVersion(version: string): boolean {
  const [major, minor] = version.split('.').map(Number);
  return !(Number(major) > 6 || (Number(major) === 6 && Number(minor) >= 2));
}
