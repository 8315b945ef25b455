import { stat } from 'node:fs/promises';
import { messageOf } from '../errors.ts';
import { announceProtection, announceUnreadProtection } from '../ledger/protection.ts';
import type { Log } from '../logger.ts';
import type { RedisClient } from '../redis/client.ts';
import { isRedisError } from '../redis/errors.ts';
import { keys } from '../redis/keys.ts';
import { evenIfIdle, type Part, repeat } from './parts.ts';

const lookEveryMs = 3_000;
const againAfterMs = 3_600_000;

/** `path`: the file of the protected ids; `read`: reads those ids. */
type ProtectionOptions = {
  redis: RedisClient;
  fp: string;
  path: string;
  read: () => AsyncIterable<readonly string[]>;
  log: Log;
};

/**
 * Publishes which ids are protected here, again within seconds of a change of the file or of a loss of data in Redis. It does so also while the process
 * is idle: an action that leaves a list to idle workers asks for them before any of them wakes. While the file cannot be read, the last state stays
 * published.
 */
export function protectionPart({ redis, fp, path, read, log }: ProtectionOptions): Part {
  let told = { version: '', at: 0 };
  const announce = async () => {
    const file = await stat(path).catch(() => null);
    const version = file === null ? '' : [file.ino, file.size, file.mtimeMs].join();
    const isTold = version === told.version && Date.now() - told.at < againAfterMs;
    if (isTold && (await redis.exists(keys.protection(fp))) === 1) return;
    try {
      await announceProtection(redis, fp, read());
    } catch (error) {
      if (isRedisError(error)) throw error;
      log.warn({ reason: messageOf(error) }, 'the protected ids cannot be read');
      await announceUnreadProtection(redis, fp);
    }
    told = { version, at: Date.now() };
  };
  return evenIfIdle(repeat('protection', lookEveryMs, announce, log));
}
