import { type Stop, stopFromStored, storedStop } from '../limiter/stop.ts';
import type { RedisClient } from '../redis/client.ts';
import { keys } from '../redis/keys.ts';
import { noteAuditLua, storedEntry } from './audit.ts';

type StopOrder = { who: string; reason: string; at: number };

/** Stops all runs of a target, also those to come. One that is stopped already stays as it was; returns what stopped it before, or null. */
export function stopTarget(redis: RedisClient, fp: string, order: StopOrder): Promise<Stop | null> {
  return change(redis, fp, storedStop({ by: 'operator', ...order }), { action: 'stop-all', ...order });
}

/** Lets all runs of a target go on; returns what stopped it, or null. Repeating it changes nothing. */
export function startTarget(redis: RedisClient, fp: string, order: StopOrder): Promise<Stop | null> {
  return change(redis, fp, '', { action: 'start-all', ...order });
}

// KEYS 1 stop 2 audit of the target  ARGV 1 stop, '' = none any more  2 audit entry; returns the stop before, or ''
const stopLua = `
local before = redis.call('GET', KEYS[1]) or ''
if ARGV[1] ~= '' then
  redis.call('SET', KEYS[1], ARGV[1], 'NX')
elseif before == '' then
  return before
else
  redis.call('DEL', KEYS[1])
end
${noteAuditLua('KEYS[2]', 'ARGV[2]')}
return before
`;

async function change(
  redis: RedisClient,
  fp: string,
  stop: string,
  entry: StopOrder & { action: string },
): Promise<Stop | null> {
  const noted = storedEntry({ by: 'operator', ...entry });
  return stopFromStored(String(await redis.eval(stopLua, 2, keys.stop(fp), keys.targetAudit(fp), stop, noted)));
}
