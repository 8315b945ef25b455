import { randomUUID } from 'node:crypto';
import type { Redis, RedisOptions } from 'ioredis';
import { ExpungeError } from '../errors.ts';
import type { RedisAddress, RedisNode } from './address.ts';
import { parseInfo } from './boot-check.ts';
import { knock } from './check-connection.ts';
import { isCluster, type RedisClient, serversOf } from './client.ts';
import { connectLedger, ready } from './connect.ts';
import { redisWords, refusalAdvice } from './errors.ts';
import { checkRights } from './rights.ts';
import { askSentinels, judgeSentinels } from './sentinels.ts';
import { type Finding, fine, judgeServer, lookAtCluster, wrong } from './server.ts';
import { refusalOfWrites } from './writes.ts';

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

async function* lookAtTheWay({ options, nodes }: RedisAddress): AsyncGenerator<Finding> {
  if (nodes) return yield* await lookAtNodes(options, nodes);
  if (!options.sentinels) return yield* knock(options);
  const { finding, primary } = judgeSentinels(options.name ?? '', await askSentinels(options));
  yield finding;
  const { sentinels: _, ...own } = options;
  if (primary) yield* knock({ ...own, ...primary });
}

/** Every server that REDIS_URL names: one of them is enough to find the cluster. */
async function lookAtNodes(options: RedisOptions, nodes: readonly RedisNode[]): Promise<Finding[]> {
  const each = await Promise.all(nodes.map((node) => all(knock({ ...options, ...node }))));
  const isFound = each.some((findings) => findings.every(({ state }) => state !== 'wrong'));
  return each
    .flat()
    .map((finding) => (isFound && finding.state === 'wrong' ? { ...finding, state: 'warning' } : finding));
}

async function all(steps: AsyncIterable<Finding>): Promise<Finding[]> {
  const findings: Finding[] = [];
  for await (const finding of steps) findings.push(finding);
  return findings;
}

async function* lookInside(redis: RedisClient, { options }: RedisAddress): AsyncGenerator<Finding> {
  const setUp = isCluster(redis) ? 'cluster' : options.sentinels ? 'sentinels' : 'one server';
  for (const server of serversOf(redis)) {
    const [info, flush] = [parseInfo(await server.info()), await flushOf(server)];
    yield* judgeServer({ info, flush, setUp }).map((finding) => withPort(finding, redis, info.tcp_port));
  }
  if (isCluster(redis)) yield await lookAtCluster(redis);
  yield await lookAtRights(redis);
  yield await lookAtWrites(redis);
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

async function lookAtWrites(redis: RedisClient): Promise<Finding> {
  const words = await refusalOfWrites(redis, randomUUID());
  if (words === '') return fine('writes', 'it takes them');
  return wrong('writes', words, refusalAdvice(words));
}

function refused(aspect: string, error: unknown): Finding {
  if (error instanceof ExpungeError) return wrong(aspect, error.message, error.next);
  return wrong(aspect, redisWords(error), null);
}
