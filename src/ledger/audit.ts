import { isoTime } from '../format.ts';
import type { RedisClient } from '../redis/client.ts';
import { keys } from '../redis/keys.ts';
import type { Run, SteeredBy } from './run.ts';

/** An action on a run, or on all runs of its target: who did it, when and why, and further facts. */
export type AuditEntry = {
  at: number; // ms since 1970
  action: string;
  by: SteeredBy;
  who: string; // '' = a guard
  reason: string;
  [fact: string]: unknown;
};

/** The number of entries that are kept for each run, and for each target. */
export const auditLength = 100;

/** Lua that adds an entry and drops the oldest beyond `auditLength`; both parameters are Lua expressions. */
export function noteAuditLua(key: string, entry: string): string {
  return `redis.call('LPUSH', ${key}, ${entry}) redis.call('LTRIM', ${key}, 0, ${auditLength - 1})`;
}

/** The same for a script of a run: KEYS 1 run  2 audit. If nothing was steered in the run yet, its trail is new, and expires with the other keys. */
export function noteAuditOfRunLua(entry: string): string {
  return `${noteAuditLua('KEYS[2]', entry)}
local leftMs = redis.call('PTTL', KEYS[1])
if leftMs > 0 then redis.call('PEXPIRE', KEYS[2], leftMs) end`;
}

/** An entry as Redis stores it. */
export function storedEntry(entry: AuditEntry): string {
  return JSON.stringify(entry);
}

/** Reads the actions on a run since its submission, and the actions on all runs of its target in that time, oldest first. */
export async function readAudit(redis: RedisClient, run: Run): Promise<AuditEntry[]> {
  const [ofRun, ofTarget] = await Promise.all([
    redis.lrange(keys.audit(run.id), 0, -1),
    readTargetAudit(redis, run.fp),
  ]);
  const until = run.endedAt || Number.POSITIVE_INFINITY;
  const around = ofTarget.filter(({ at, run: other }) => at >= run.createdAt && at <= until && other === undefined);
  const { createdAt: at, createdBy: who, note: reason } = run;
  const submitted: AuditEntry = { at, action: 'submit', by: 'operator', who, reason };
  return [submitted, ...[...ofRun.map(parseEntry).reverse(), ...around].sort((a, b) => a.at - b.at)];
}

/** Reads the actions on a target as a whole, and the removals of its runs, oldest first. */
export async function readTargetAudit(redis: RedisClient, fp: string): Promise<AuditEntry[]> {
  return (await redis.lrange(keys.targetAudit(fp), 0, -1)).map(parseEntry).reverse();
}

/** Formats an entry for `--json` and files; `at` in ISO 8601. */
export function auditFacts({ at, ...others }: AuditEntry) {
  return { at: isoTime(at), ...others };
}

/** Records an action on a target, or the removal of a run. Repeating it records it twice. */
export async function noteTargetAction(redis: RedisClient, fp: string, entry: AuditEntry): Promise<void> {
  await redis.eval(noteAuditLua('KEYS[1]', 'ARGV[1]'), 1, keys.targetAudit(fp), storedEntry(entry));
}

/**
 * Records an action that does not change the state of a run; scripts record the other actions. Records nothing if the run is gone. Repeating it
 * records it twice.
 */
export async function noteRunAction(redis: RedisClient, run: string, entry: AuditEntry): Promise<void> {
  await redis.eval(noteRunActionLua, 2, keys.run(run), keys.audit(run), storedEntry(entry));
}

// KEYS 1 run  2 audit  ARGV 1 audit entry
const noteRunActionLua = `
if redis.call('EXISTS', KEYS[1]) == 0 then return end
${noteAuditOfRunLua('ARGV[1]')}
`;

/** Records in the trail of a run that an accepted action was not carried out. Records nothing if the run is gone. Repeating it changes nothing. */
export async function noteFailedAction(
  redis: RedisClient,
  run: string,
  failed: { at: number; who: string; reason: string; failedAction: string; error: string },
): Promise<void> {
  const entry: AuditEntry = { ...failed, action: 'failed', by: 'operator' };
  await redis.eval(noteFailedLua, 2, keys.run(run), keys.audit(run), storedEntry(entry));
}

// KEYS 1 run  2 audit  ARGV 1 audit entry
const noteFailedLua = `
if redis.call('EXISTS', KEYS[1]) == 0 or redis.call('LPOS', KEYS[2], ARGV[1]) then return end
${noteAuditOfRunLua('ARGV[1]')}
`;

/** The entry in the audit trail; `plan`: its id. */
export type NotedPlan = AuditEntry & { plan: string };

/** Lua: adds a note to the record of a plan's run about rules that were loosened; `note` = '' adds nothing. */
export const noteLoosenedFunction = `
local function noteLoosened(runKey, note)
  if note == '' then return end
  local before = redis.call('HGET', runKey, 'planChanged')
  redis.call('HSET', runKey, 'planChanged', before and before .. '; ' .. note or note)
end
`;

/**
 * Records who applied or approved the plan that a run carries out, in the run (which is written already) and in its audit trail. `approver`: the only
 * person who is allowed to loosen its rules, '' = anyone. Repeating it changes nothing.
 */
export async function notePlan(redis: RedisClient, run: string, approver: string, entry: NotedPlan): Promise<void> {
  await redis.eval(notePlanLua, 2, keys.run(run), keys.audit(run), entry.plan, storedEntry(entry), approver);
}

// KEYS 1 run  2 audit  ARGV 1 plan  2 audit entry  3 approver
const notePlanLua = `
if redis.call('EXISTS', KEYS[1]) == 0 or redis.call('HGET', KEYS[1], 'plan') == ARGV[1] then return end
redis.call('HSET', KEYS[1], 'plan', ARGV[1], 'approver', ARGV[3])
${noteAuditOfRunLua('ARGV[2]')}
`;

export function parseEntry(text: string): AuditEntry {
  return JSON.parse(text) as AuditEntry;
}
