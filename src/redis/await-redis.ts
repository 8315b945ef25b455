import type { RedisAddress } from './address.ts';
import type { RedisClient } from './client.ts';
import { isPermanent } from './connect.ts';
import { redisWords, unreachable } from './trouble.ts';

const firstAgainMs = 5_000;
const longestAgainMs = 60_000;

/**
 * Waits until the connection is usable, however long that takes, or until `stop` is aborted. Tells at once why it isn't, when that changes,
 * and again in growing intervals. Throws UNREACHABLE where waiting can't help.
 */
export function awaitRedis(
  redis: RedisClient,
  address: RedisAddress,
  stop: AbortSignal,
  tell: (words: string) => void,
): Promise<void> {
  const telling = tellAgain(tell);
  return new Promise((resolve, reject) => {
    const end = (error?: Error) => {
      telling.end();
      redis.off('ready', onEnd).off('error', onError);
      stop.removeEventListener('abort', onEnd);
      if (error === undefined) resolve();
      else reject(error);
    };
    const onEnd = () => end();
    const onError = (error: Error) => {
      if (isPermanent(error, true)) end(unreachable(address, redisWords(error)));
      else telling.see(redisWords(error));
    };
    redis.on('ready', onEnd).on('error', onError);
    stop.addEventListener('abort', onEnd, { once: true });
    if (redis.status === 'ready' || stop.aborted) end();
  });
}

/** Tells other words at once, and the same ones after 5, 10, 20, 40 s, and then once a minute. */
function tellAgain(tell: (words: string) => void) {
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
    see: (now: string) => {
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
