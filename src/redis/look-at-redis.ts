import { randomUUID } from 'node:crypto';
import type { Redis } from 'ioredis';
import { ExpungeError } from '../errors.ts';
import type { RedisAddress } from './address.ts';
import { parseInfo } from './boot-check.ts';
import { isCluster, type RedisClient, serversOf } from './client.ts';
import { connectLedger, ready } from './connect.ts';
import { type Finding, fine, wrong } from './finding.ts';
import { judgeServer } from './judge-server.ts';
import { keys } from './keys.ts';
import { knock } from './knock.ts';
import { lookAtCluster } from './look-at-cluster.ts';
import { askSentinels, judgeSentinels } from './look-at-sentinels.ts';
import { checkRights } from './rights.ts';
import { redisWords } from './trouble.ts';

const probeMs = 10_000;

/**
 * Looks at the Redis of an address, from how it is reached to what it promises, and tells one thing after the other. Ends where what
 * follows could not be seen. Writes one key that goes by itself.
 */
export async function* lookAtRedis(address: RedisAddress): AsyncGenerator<Finding> {
  let isReached = false;
  for await (const finding of lookAtTheWay(address)) {
    yield finding;
    isReached ||= finding.aspect === 'login' && finding.state === 'ok';
  }
  if (!isReached) return;
  const redis = connectLedger(address);
  try {
    await ready(redis, address);
    yield* lookInside(redis, address);
  } catch (error) {
    yield refused('answer', error);
  } finally {
    redis.disconnect();
  }
}

/** Of a cluster every server that REDIS_URL names: one of them is enough. */
async function* lookAtTheWay({ options, nodes }: RedisAddress): AsyncGenerator<Finding> {
  if (nodes) {
    for (const node of nodes) yield* knock({ ...options, ...node });
    return;
  }
  if (!options.sentinels) return yield* knock(options);
  const { finding, primary } = judgeSentinels(options.name ?? '', await askSentinels(options));
  yield finding;
  const { sentinels: _, ...own } = options;
  if (primary) yield* knock({ ...own, ...primary });
}

async function* lookInside(redis: RedisClient, { options }: RedisAddress): AsyncGenerator<Finding> {
  const isOneOfSeveral = isCluster(redis) || Boolean(options.sentinels);
  for (const server of serversOf(redis)) {
    const [info, flush] = [parseInfo(await server.info()), await flushOf(server)];
    yield* judgeServer({ info, flush, isOneOfSeveral }).map((finding) => withPort(finding, redis, info.tcp_port));
  }
  if (isCluster(redis)) yield await lookAtCluster(redis);
  yield await lookAtRights(redis);
  yield await writeProbe(redis);
}

/** Which server of a cluster it is about. */
function withPort(finding: Finding, redis: RedisClient, port = '?'): Finding {
  return isCluster(redis) ? { ...finding, words: `${finding.words} (port ${port})` } : finding;
}

async function flushOf(server: Redis): Promise<string | null> {
  const flat = (await server.config('GET', 'appendfsync').catch(() => [])) as string[];
  return flat[1] ?? null;
}

async function lookAtRights(redis: RedisClient): Promise<Finding> {
  return checkRights(redis).then(
    () => fine('rights', 'the login may do all that is needed'),
    (error) => refused('rights', error),
  );
}

async function writeProbe(redis: RedisClient): Promise<Finding> {
  try {
    await redis.set(keys.probe(randomUUID()), '', 'PX', probeMs);
    return fine('writes', 'it takes them');
  } catch (error) {
    return refused('writes', error);
  }
}

function refused(aspect: string, error: unknown): Finding {
  if (error instanceof ExpungeError) return wrong(aspect, error.message, error.next);
  const words = redisWords(error);
  return wrong(aspect, words, advice.find(([pattern]) => pattern.test(words))?.[1] ?? null);
}

const advice: [RegExp, string][] = [
  [/^OOM/, 'raise its maxmemory, or remove what fills it'],
  [/^MISCONF/, 'make room on its disk, and see its log'],
  [/^NOREPLICAS/, 'bring its replicas back, or lower its min-replicas-to-write'],
  [/^READONLY/, 'name the primary in REDIS_URL, or its sentinels'],
];
