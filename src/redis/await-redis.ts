import { sleepUntilAborted } from '../wait.ts';
import type { RedisAddress } from './address.ts';
import type { RedisClient } from './client.ts';
import { isPermanent, reach } from './connect.ts';
import { describeRedisError, findRootError, unreachable } from './errors.ts';

const retryMs = 500;
const firstRepeatMs = 5_000;
const maxRepeatMs = 60_000;

/**
 * Waits until the connection is usable, however long that takes, or until `stop` is aborted. Reports why it is not usable: a changed reason at once,
 * the same reason at growing intervals. Throws UNREACHABLE if waiting does not help.
 */
export async function awaitRedis(
  redis: RedisClient,
  address: RedisAddress,
  stop: AbortSignal,
  onReason: (words: string) => void,
): Promise<void> {
  const reports = repeatReports(onReason);
  try {
    while (!stop.aborted) {
      await connected(redis, address, stop, reports.report);
      const words = stop.aborted ? 'ready' : await reach(redis);
      if (words === 'ready') return;
      reports.report(words);
      await sleepUntilAborted(retryMs, stop);
    }
  } finally {
    reports.end();
  }
}

/** Returns once there is a connection, or `stop` is aborted. Throws UNREACHABLE if waiting does not help. */
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
      if (isPermanent(findRootError(error), true)) end(unreachable(address, describeRedisError(error)));
      else report(describeRedisError(error));
    };
    redis.on('ready', onEnd).on('error', onError);
    stop.addEventListener('abort', onEnd, { once: true });
    if (redis.status === 'ready' || stop.aborted) end();
  });
}

/** Reports a changed reason at once, and the same reason after 5, 10, 20, 40 s, then once a minute. */
function repeatReports(onReason: (words: string) => void) {
  let words = 'no answer yet; it may be loading its data';
  let repeatMs = firstRepeatMs;
  const later = () =>
    setTimeout(() => {
      onReason(words);
      repeatMs = Math.min(2 * repeatMs, maxRepeatMs);
      timer = later();
    }, repeatMs);
  let timer = later();
  return {
    report: (now: string) => {
      if (now === words) return;
      clearTimeout(timer);
      words = now;
      repeatMs = firstRepeatMs;
      onReason(words);
      timer = later();
    },
    end: () => clearTimeout(timer),
  };
}
