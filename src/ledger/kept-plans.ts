import { randomBytes } from 'node:crypto';
import { ExpungeError } from '../errors.ts';
import { count, isoTime } from '../format.ts';
import { type Target, targetOf } from '../model/target.ts';
import type { RedisClient } from '../redis/client.ts';
import { keys } from '../redis/keys.ts';
import type { ServerIdentity } from '../redis/server-identity.ts';
import { type AuditEntry, noteAuditLua, storedEntry } from './audit.ts';
import { addEventFunction, eventArguments, type OutboxEvent, outboxKeys } from './outbox.ts';

/*
 * The plans that Redis keeps with their lists, so that any server can carry them out.
 *
 * A plan is not a run: nothing that sends reads these keys. It is decided once, when it is applied or refused, and only the script that decides it
 * changes its state. Its files are removed then, and when it expires; a line about it stays, so that the next person learns the decision.
 */

/** A plan that Redis keeps. Times are ms since 1970. */
export type KeptPlan = {
  id: string; // the fingerprint of its target, and eight hex digits
  baseUrl: string;
  account: string;
  name: string; // of its list, for people
  by: string; // who made it
  at: number;
  reason: string;
  approver: string | null; // who has to apply it, as --approve-by takes it; null: anyone who may apply plans
  ids: number; // to be deleted
  bytes: number; // of its files in Redis
  expiresAt: number;
  isDraft: boolean; // whether the person who sent the list applies it at once: it is in no inbox
  server: ServerIdentity; // the Redis process that it was given to
  state: PlanState;
  decision: Decision | null; // null while it waits
};

type PlanState = 'waiting' | 'applied' | 'refused';

/** Who decided about a plan, when and why. `run`: the run that carries it out, '' = none. */
type Decision = { who: string; at: number; reason: string; run: string };

const maxPlans = 100; // in the inbox of a target; and as many drafts, so that neither takes the room of the other
const maxOfPerson = 50; // so that one person alone cannot fill it
const maxBytes = 1e9;
const knownMs = 30 * 86_400_000; // how long the decision about a plan is known
const maxLines = 1_000;
const unfinishedMs = 3_600_000; // the files of a plan that was not kept completely

/** A new id for a plan of a target. */
export function newPlanId(fp: string): string {
  return `${fp}-${randomBytes(4).toString('hex')}`;
}

/** The fingerprint of the target in the id of a plan; null if the text is another id. */
export function targetInPlanId(id: string): string | null {
  return /^([0-9a-f]{16})-[0-9a-f]{8}$/.exec(id)?.[1] ?? null;
}

/** The plan with this id, even if it is decided or has expired; null if Redis does not know it. */
export async function readKeptPlan(redis: RedisClient, id: string): Promise<KeptPlan | null> {
  const fp = targetInPlanId(id);
  const text = fp === null ? null : await redis.hget(keys.plans(fp), id);
  return text === null ? null : (JSON.parse(text) as KeptPlan);
}

/** The plans in the inboxes of targets, the oldest first, with those that were decided or have expired in the last 30 days. */
export async function listKeptPlans(redis: RedisClient, targets: readonly Target[]): Promise<KeptPlan[]> {
  const texts = await Promise.all(targets.map(({ fp }) => redis.hvals(keys.plans(fp))));
  const plans = texts.flat().map((text) => JSON.parse(text) as KeptPlan);
  return plans.filter(({ isDraft }) => !isDraft).sort((a, b) => a.at - b.at);
}

/** A note about a plan for people: an entry in the audit trail of its target and an event, if it is in an inbox. */
export type PlanNote = { entry: AuditEntry; event: OutboxEvent } | null;

/**
 * Enters a plan whose files are written. Throws USAGE if its target, or its planner there, has too many plans of its kind, or too large ones. Until
 * then the plan is invisible. Repeating it is harmless.
 */
export async function enterPlan(redis: RedisClient, plan: KeptPlan, note: PlanNote): Promise<void> {
  const { fp } = targetOf(plan.baseUrl, plan.account);
  const limits = [maxPlans, maxBytes, knownMs, maxLines, maxOfPerson];
  const full = (await redis.eval(
    ...[enterLua, 5, ...planKeys(fp, plan.id), plan.id, JSON.stringify(plan), ...limits, ...noteArguments(note)],
  )) as [plans: number, bytes: string, oldest: string, own: number] | null;
  if (full !== null) throw noRoom(plan, full[0], Number(full[1]), Number(full[2]), full[3]);
}

function noRoom({ isDraft, by }: KeptPlan, plans: number, bytes: number, oldest: number, own: number): ExpungeError {
  const what = isDraft ? 'plans that no one has confirmed' : 'plans that wait';
  const kept = `${count(plans)} ${what}, of ${megabytes(bytes)}, ${count(own)} of them of ${by}`;
  const most = `at most ${count(maxPlans)} of ${megabytes(maxBytes)} together, and ${count(maxOfPerson)} of one person`;
  const expiry = oldest > 0 ? `the next one expires at ${isoTime(oldest)}` : 'send a shorter list';
  return new ExpungeError('USAGE', `Redis keeps ${kept} of this target; ${most}; nothing was sent`, {
    next: (toType) => (isDraft ? expiry : `approve, refuse or withdraw what waits: ${toType('plans')}; ${expiry}`),
  });
}

function megabytes(bytes: number): string {
  return `${count(Math.ceil(bytes / 1e6))} MB`;
}

/** Removes a plan that was not kept completely, with its files. Repeating it is harmless. */
export async function forgetPlan(redis: RedisClient, id: string): Promise<void> {
  const fp = targetInPlanId(id)!;
  await redis.hdel(keys.plans(fp), id);
  await redis.unlink(keys.planFiles(fp, id));
}

/**
 * Removes a plan that waits, with its files and an entry in the audit trail, if any. A plan that was decided stays as it is. Returns the plan that is
 * there afterwards, or null. Repeating it is harmless.
 */
export async function removeWaiting(
  redis: RedisClient,
  id: string,
  entry: AuditEntry | null,
): Promise<KeptPlan | null> {
  const fp = targetInPlanId(id)!;
  const noted = entry === null ? '' : storedEntry(entry);
  await redis.eval(removeLua, 3, keys.plans(fp), keys.planFiles(fp, id), keys.targetAudit(fp), id, noted);
  return readKeptPlan(redis, id);
}

/**
 * Decides about a plan that waits: it is applied by this run, or refused. Exactly one decision takes effect, and none on a plan that has expired by
 * the clock of Redis. Returns the plan as it is afterwards, whoever decided; null if it is unknown. Repeating it changes nothing.
 */
export async function decidePlan(
  redis: RedisClient,
  id: string,
  state: Exclude<PlanState, 'waiting'>,
  decision: Decision,
  noteOf: (plan: KeptPlan) => PlanNote,
): Promise<KeptPlan | null> {
  const fp = targetInPlanId(id);
  const before = fp === null ? null : await redis.hget(keys.plans(fp), id);
  if (fp === null || before === null) return null;
  const plan = JSON.parse(before) as KeptPlan;
  if (plan.state !== 'waiting') return plan;
  const after: KeptPlan = { ...plan, state, decision };
  const texts = [before, JSON.stringify(after), plan.expiresAt, state === 'refused' ? 1 : 0];
  await redis.eval(decideLua, 5, ...planKeys(fp, id), id, ...texts, ...noteArguments(noteOf(after)));
  return readKeptPlan(redis, id);
}

/** Removes the files of an applied plan: its run has the list. Repeating it is harmless. */
export async function dropPlanFiles(redis: RedisClient, { id, baseUrl, account }: KeptPlan): Promise<void> {
  await redis.unlink(keys.planFiles(targetOf(baseUrl, account).fp, id));
}

function planKeys(fp: string, id: string): string[] {
  return [keys.plans(fp), keys.planFiles(fp, id), ...outboxKeys(fp), keys.targetAudit(fp)];
}

function noteArguments(note: PlanNote): string[] {
  return [...eventArguments(note?.event ?? null), note === null ? '' : storedEntry(note.entry)];
}

const nowLua = `local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)`;

// KEYS 1 plans  2 files of the plan  3 outbox  4 events  5 audit  ARGV 1 id  2 plan  3 plans at most  4 bytes at most  5 ms for which a decision is
// known  6 lines at most  7 plans of a person at most  8 event id  9 event  10 audit entry or ''. Returns nothing if it was entered, otherwise how
// full it is, the next expiry, and how many are of the same person. Only plans of its kind count.
const enterLua = `${addEventFunction}${nowLua}
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1 then return nil end
local new = cjson.decode(ARGV[2])
local all = redis.call('HGETALL', KEYS[1])
local plans, bytes, oldest, lines, own = 0, 0, 0, {}, 0
for i = 1, #all, 2 do
  local plan = cjson.decode(all[i + 1])
  local isOpen = plan.state == 'waiting' and plan.expiresAt > now
  if isOpen then
    if plan.isDraft == new.isDraft then
      plans, bytes = plans + 1, bytes + plan.bytes
      if plan.by == new.by then own = own + 1 end
      if oldest == 0 or plan.expiresAt < oldest then oldest = plan.expiresAt end
    end
  elseif plan.isDraft or plan.at + tonumber(ARGV[5]) <= now then
    redis.call('HDEL', KEYS[1], all[i])
  else
    lines[#lines + 1] = {plan.at, all[i]}
  end
end
if plans >= tonumber(ARGV[3]) or own >= tonumber(ARGV[7]) or bytes + new.bytes > tonumber(ARGV[4]) then
  return {plans, string.format('%.0f', bytes), string.format('%.0f', oldest), own}
end
table.sort(lines, function(a, b) return a[1] < b[1] end)
for i = 1, #lines - tonumber(ARGV[6]) do redis.call('HDEL', KEYS[1], lines[i][2]) end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[5])
redis.call('PEXPIRE', KEYS[2], string.format('%.0f', math.max(1, new.expiresAt - now)))
addEvent(KEYS[3], KEYS[4], ARGV[8], ARGV[9])
if ARGV[10] ~= '' then ${noteAuditLua('KEYS[5]', 'ARGV[10]')} end
return nil
`;

// KEYS 1 plans  2 files of the plan  3 audit  ARGV 1 id  2 audit entry or ''
const removeLua = `
local plan = redis.call('HGET', KEYS[1], ARGV[1])
if not plan or cjson.decode(plan).state ~= 'waiting' then return end
redis.call('HDEL', KEYS[1], ARGV[1])
redis.call('UNLINK', KEYS[2])
if ARGV[2] ~= '' then ${noteAuditLua('KEYS[3]', 'ARGV[2]')} end
`;

// KEYS 1 plans  2 files of the plan  3 outbox  4 events  5 audit  ARGV 1 id  2 the plan as it was read  3 as it is to be  4 when it expires
// 5 whether its files are removed, 1 or 0  6 event id  7 event  8 audit entry or ''
const decideLua = `${addEventFunction}${nowLua}
if redis.call('HGET', KEYS[1], ARGV[1]) ~= ARGV[2] or tonumber(ARGV[4]) <= now then return end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
redis.call('PEXPIRE', KEYS[1], ${knownMs})
if ARGV[5] == '1' then redis.call('UNLINK', KEYS[2]) end
addEvent(KEYS[3], KEYS[4], ARGV[6], ARGV[7])
if ARGV[8] ~= '' then ${noteAuditLua('KEYS[5]', 'ARGV[8]')} end
`;

// The files of a plan are fields of one hash, so that all of them expire and are removed at once: `list.0`, `list.1`, … and `plan`.

const partsAtOnce = 8;

/** The names of the files of a plan. */
export type PlanFile = 'list' | 'rejects' | 'plan' | 'shown';

/**
 * Writes a file of a plan in parts, and returns the number of bytes. Throws USAGE for too many. Until the plan is entered, the files expire an hour
 * after the last part.
 */
export async function writePlanFileParts(
  redis: RedisClient,
  id: string,
  name: PlanFile,
  parts: AsyncIterable<Buffer>,
): Promise<number> {
  const key = keys.planFiles(targetInPlanId(id)!, id);
  let [n, bytes] = [0, 0];
  for await (const part of parts) {
    bytes += part.length;
    if (bytes > maxBytes) throw tooLarge();
    await redis.eval(writePartLua, 1, key, `${name}.${n++}`, part, unfinishedMs);
  }
  return bytes;
}

// One script, so that no part is ever without an expiry. KEYS 1 files of a plan  ARGV 1 field  2 part  3 ms
const writePartLua = `
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
`;

function tooLarge(): ExpungeError {
  return new ExpungeError('USAGE', `Redis keeps plans of at most ${megabytes(maxBytes)}; nothing was sent`, {
    next: (toType) => `send it in parts; or, with access to Redis: ${toType('run', 'FILE', '--detach')}`,
  });
}

/** The parts of a file of a plan; none if it has no such file. */
export async function* readPlanFileParts(redis: RedisClient, id: string, name: PlanFile): AsyncGenerator<Buffer> {
  const fp = targetInPlanId(id);
  if (fp === null) return;
  for (let n = 0; ; n += partsAtOnce) {
    const fields = Array.from({ length: partsAtOnce }, (_, i) => `${name}.${n + i}`);
    const parts = await redis.hmgetBuffer(keys.planFiles(fp, id), ...fields);
    for (const part of parts) {
      if (part === null) return;
      yield part;
    }
  }
}
