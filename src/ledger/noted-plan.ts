import type { RedisClient } from '../redis/client.ts';
import { keys } from '../redis/keys.ts';
import { type AuditEntry, noteAuditLua, storedEntry } from './audit.ts';

/** How long it is known that a plan was carried out, in ms: longer than its run, which may be removed. */
const knownMs = 365 * 86_400_000;

/** The run that carries out the plan, or null. Redis may have forgotten it since. */
export function findRunOfPlan(redis: RedisClient, fp: string, sha256: string): Promise<string | null> {
  return redis.get(keys.plan(fp, sha256));
}

/** Makes a run the one that carries out the plan, unless there is one. Returns that run; repeating it returns the same. */
export async function claimPlan(redis: RedisClient, fp: string, sha256: string, run: string): Promise<string> {
  await redis.set(keys.plan(fp, sha256), run, 'PX', knownMs, 'NX');
  return (await findRunOfPlan(redis, fp, sha256)) ?? run;
}

/** The entry of the audit trail; `plan`: the SHA-256 of the file of the plan. */
type NotedPlan = AuditEntry & { plan: string };

/** Records in a run, and in its audit trail, who applied or approved the plan that it carries out. Repeating it changes nothing. */
export async function notePlan(redis: RedisClient, run: string, entry: NotedPlan): Promise<void> {
  await redis.eval(notePlanLua, 2, keys.run(run), keys.audit(run), entry.plan, storedEntry(entry));
}

// KEYS 1 run  2 audit  ARGV 1 plan  2 audit entry
const notePlanLua = `
if redis.call('EXISTS', KEYS[1]) == 0 or redis.call('HGET', KEYS[1], 'plan') == ARGV[1] then return end
redis.call('HSET', KEYS[1], 'plan', ARGV[1])
${noteAuditLua('KEYS[2]', 'ARGV[2]')}
local leftMs = redis.call('PTTL', KEYS[1])
if leftMs > 0 then redis.call('PEXPIRE', KEYS[2], leftMs) end
`;
