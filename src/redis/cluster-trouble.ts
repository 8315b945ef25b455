import type { RedisOptions } from 'ioredis';
import type { RedisAddress } from './address.ts';
import { parseInfo } from './boot-check.ts';
import { clusterSlots } from './client.ts';
import { redisWords } from './errors.ts';
import { firstTroubleOf, oneShot } from './probe.ts';

/**
 * Why the client of a cluster does not become ready, in words: ioredis keeps that to itself. What a server says of the cluster tells
 * more than that another one is not there.
 */
export async function clusterTrouble({ nodes = [], options }: RedisAddress): Promise<string> {
  const said = await Promise.all(nodes.map((node) => ask({ ...options, ...node })));
  const words = nodes.map(({ host, port }, n) => `${host}:${port}: ${said[n]!.words}`);
  return words[said.findIndex(({ hasAnswered }) => hasAnswered)] ?? words[0] ?? 'no server is named';
}

async function ask(options: RedisOptions): Promise<{ hasAnswered: boolean; words: string }> {
  const redis = oneShot(options, 'cluster');
  const trouble = firstTroubleOf(redis);
  try {
    await redis.connect();
    const { cluster_state: state = '?', cluster_slots_ok: served = '?' } = parseInfo(await redis.cluster('INFO'));
    if (state === 'ok') return { hasAnswered: true, words: 'the cluster is well, but does not answer in time' };
    const words = `the cluster is down (state ${state}, ${served} of ${clusterSlots} slots served)`;
    return { hasAnswered: true, words };
  } catch (error) {
    return { hasAnswered: redis.status === 'ready', words: redisWords(trouble() ?? error) };
  } finally {
    redis.disconnect();
  }
}
