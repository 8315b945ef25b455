import type { RedisClient } from '../redis/client.ts';
import { keys } from '../redis/keys.ts';
import { type AuditEntry, noteAuditLua, storedEntry } from './audit.ts';

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
