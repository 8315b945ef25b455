import { setTimeout as sleep } from 'node:timers/promises';
import type { RedisAddress } from './address.ts';
import type { RedisClient } from './client.ts';
import { isPermanent, reach } from './connect.ts';
import { describeRedisError, rootOf, unreachable } from './errors.ts';

const lookAgainMs = 500;
const firstAgainMs = 5_000;
const longestAgainMs = 60_000;

/**
 * Waits until the connection is usable, however long that takes, or until `stop` is aborted. Tells at once why it isn't, when that changes,
 * and again in growing intervals. Throws UNREACHABLE where waiting can't help.
 */
export async function awaitRedis(
  redis: RedisClient,
  address: RedisAddress,
  stop: AbortSignal,
  tell: (words: string) => void,
): Promise<void> {
  const reports = repeatReports(tell);
  try {
    while (!stop.aborted) {
      await connected(redis, address, stop, reports.report);
      const words = stop.aborted ? 'ready' : await reach(redis);
      if (words === 'ready') return;
      reports.report(words);
      await sleep(lookAgainMs, undefined, { signal: stop }).catch(() => {});
    }
  } finally {
    reports.end();
  }
}

/** Returns once there is a connection, or `stop` is aborted. Throws UNREACHABLE where there will be none. */
function connected(
  redis: RedisClient,
  address: RedisAddress,
  stop: AbortSignal,
  report: (words: string) => void,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const end = (error?: Error) => {
      redis.off('ready', onEnd).off('error', onError);
      stop.removeEventListener('abort', onEnd);
      if (error === undefined) resolve();
      else reject(error);
    };
    const onEnd = () => end();
    const onError = (error: Error) => {
      if (isPermanent(rootOf(error), true)) end(unreachable(address, describeRedisError(error)));
      else report(describeRedisError(error));
    };
    redis.on('ready', onEnd).on('error', onError);
    stop.addEventListener('abort', onEnd, { once: true });
    if (redis.status === 'ready' || stop.aborted) end();
  });
}

/** Tells other words at once, and the same ones after 5, 10, 20, 40 s, and then once a minute. */
function repeatReports(tell: (words: string) => void) {
  let words = 'no answer yet; it may be loading its data';
  let againMs = firstAgainMs;
  const later = () =>
    setTimeout(() => {
      tell(words);
      againMs = Math.min(2 * againMs, longestAgainMs);
      timer = later();
    }, againMs);
  let timer = later();
  return {
    report: (now: string) => {
      if (now === words) return;
      clearTimeout(timer);
      words = now;
      againMs = firstAgainMs;
      tell(words);
      timer = later();
    },
    end: () => clearTimeout(timer),
  };
}

/** Asks again and again until the condition holds: true then, false once the deadline has passed. */
export async function waitUntil(
  condition: () => boolean | Promise<boolean>,
  deadlineMs: number,
  everyMs = 20,
): Promise<boolean> {
  const end = performance.now() + deadlineMs;
  while (!(await condition())) {
    if (performance.now() >= end) return false;
    await sleep(everyMs);
  }
  return true;
}
