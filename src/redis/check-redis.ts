import { randomUUID } from 'node:crypto';
import type { Redis, RedisOptions } from 'ioredis';
import { ExpungeError } from '../errors.ts';
import type { RedisAddress, RedisNode } from './address.ts';
import { parseInfo } from './boot-check.ts';
import { probeConnection } from './check-connection.ts';
import { dataServers, isCluster, type RedisClient } from './client.ts';
import { connectLedger, ready } from './connect.ts';
import { costOfDistance, isFar, measureRoundTrip, nearer, roundTripText } from './distance.ts';
import { describeRedisError, rejectionAdvice } from './errors.ts';
import { keys } from './keys.ts';
import { checkRights } from './rights.ts';
import { askSentinels, evaluateSentinels } from './sentinels.ts';
import { evaluateServer, type Finding, fail, inspectCluster, pass, warn } from './server.ts';
import { readServerSettings } from './server-settings.ts';
import { probeWrites } from './writes.ts';

/**
 * Checks the Redis of an address, from the connection to its durability, and yields one finding after the other. Ends early if the rest cannot be
 * checked. Writes one key, which expires after a second. Never throws.
 */
export async function* inspectRedis(address: RedisAddress): AsyncGenerator<Finding> {
  let isReached = false;
  for await (const finding of inspectConnection(address)) {
    yield finding;
    isReached ||= finding.aspect === 'login' && finding.state === 'ok';
  }
  if (!isReached) return;
  const redis = connectLedger(address);
  try {
    await ready(redis, address);
    yield* inspectServers(redis, address);
  } catch (error) {
    yield failed('answer', error);
  } finally {
    redis.disconnect();
  }
}

async function* inspectConnection({ options, nodes }: RedisAddress): AsyncGenerator<Finding> {
  if (nodes) return yield* await inspectNodes(options, nodes);
  if (!options.sentinels) return yield* probeConnection(options);
  const { finding, primary } = evaluateSentinels(options.name ?? '', await askSentinels(options));
  yield finding;
  const { sentinels: _, ...own } = options;
  if (primary) yield* probeConnection({ ...own, ...primary });
}

/** Checks every server that REDIS_URL names. One server that passes is enough to find the cluster, so failures of the others are then warnings. */
async function inspectNodes(options: RedisOptions, nodes: readonly RedisNode[]): Promise<Finding[]> {
  const each = await Promise.all(nodes.map((node) => collect(probeConnection({ ...options, ...node }))));
  const isFound = each.some((findings) => findings.every(({ state }) => state !== 'fail'));
  return each.flat().map((finding) => (isFound && finding.state === 'fail' ? { ...finding, state: 'warn' } : finding));
}

async function collect(steps: AsyncIterable<Finding>): Promise<Finding[]> {
  const findings: Finding[] = [];
  for await (const finding of steps) findings.push(finding);
  return findings;
}

async function* inspectServers(redis: RedisClient, { options }: RedisAddress): AsyncGenerator<Finding> {
  const setUp = isCluster(redis) ? 'cluster' : options.sentinels ? 'sentinels' : 'one server';
  for (const server of dataServers(redis)) {
    const [info, flush] = [parseInfo(await server.info()), await flushOf(server)];
    yield* evaluateServer({ info, flush, setUp }).map((finding) => withPort(finding, redis, info.tcp_port));
  }
  if (isCluster(redis)) yield await inspectCluster(redis);
  yield await inspectDistance(redis);
  yield await inspectRights(redis);
  yield await inspectWrites(redis);
}

/** Adds the port of its server to a finding about a cluster. */
function withPort(finding: Finding, redis: RedisClient, port = '?'): Finding {
  return isCluster(redis) ? { ...finding, words: `${finding.words} (port ${port})` } : finding;
}

async function flushOf(server: Redis): Promise<string | null> {
  const flat = await readServerSettings(server, 'appendfsync').catch(() => null);
  return flat?.[1] ?? null;
}

async function inspectDistance(redis: RedisClient): Promise<Finding> {
  const ms = await measureRoundTrip(redis, keys.probe(randomUUID()));
  const facts = { round_trip_ms: Number(ms.toPrecision(3)) };
  if (!isFar(ms)) return { ...pass('distance', `it answers in ${roundTripText(ms)}`), facts };
  return { ...warn('distance', `it is ${roundTripText(ms)} away: ${costOfDistance(ms)}`, nearer), facts };
}

async function inspectRights(redis: RedisClient): Promise<Finding> {
  return checkRights(redis).then(
    () => pass('rights', 'the login may do all that is needed'),
    (error) => failed('rights', error),
  );
}

async function inspectWrites(redis: RedisClient): Promise<Finding> {
  const words = await probeWrites(redis, randomUUID());
  if (words === '') return pass('writes', 'it accepts them');
  return fail('writes', words, rejectionAdvice(words));
}

function failed(aspect: string, error: unknown): Finding {
  if (error instanceof ExpungeError) return fail(aspect, error.message, error.advice);
  return fail(aspect, describeRedisError(error), null);
}
