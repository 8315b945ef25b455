import type { ListSources } from '../config/list-source.ts';
import type { ProtectedList } from '../input/spool.ts';
import { type AuditEntry, noteAuditLua, parseEntry, storedEntry } from '../ledger/audit.ts';
import type { Ledger } from '../ledger/ledger.ts';
import { addEventFunction, eventArguments, type OutboxEvent, outboxKeys } from '../ledger/outbox.ts';
import type { HaltCode } from '../ledger/run.ts';
import { liftedFunction, newActionId } from '../ledger/steer-target.ts';
import type { Log } from '../logger.ts';
import type { Target } from '../model/target.ts';
import type { Enqueuer } from '../queue/enqueuer.ts';
import type { RedisClient } from '../redis/client.ts';
import { keys } from '../redis/keys.ts';
import type { CarriedOver } from './carried-over.ts';
import type { SourceDeps } from './open-source.ts';
import {
  type Definition,
  definitionFields,
  type GuardCode,
  type HistoryEntry,
  parseSchedule,
  type Schedule,
} from './schedule.ts';

/** The dependencies of reconciling the schedules of a target. */
export type ScheduleDeps = Omit<SourceDeps, 'stop'> & {
  ledger: Ledger;
  target: Target;
  enqueuer: Enqueuer;
  /** The sources of this process, which ignores schedules with other sources. */
  sources: ListSources;
  stateDir: string;
  /** The file of protected ids that the settings of this process name. */
  protectFile: string | null;
  who: string;
  /** The reason of an operator who runs it now. */
  reason?: string;
  /** Returns ms since 1970 by the clock of Redis, as of the last `syncClock`. So occurrences are due at the same time on every machine. */
  now(): number;
  /** Reads the clock of Redis. Throws if Redis does not answer. */
  syncClock(): Promise<void>;
  log: Log;
  /** Called with a run before it is written. */
  onRun?: ((run: string) => Promise<void>) | undefined;
};

/** The person or guard who changes a schedule, when and why; `who` is '' for a guard. */
type Author = Pick<AuditEntry, 'at' | 'by' | 'who' | 'reason'>;

/** A pause by a guard. `halt`: why its run is halted, '' for another guard. */
export type GuardPause = { guard: GuardCode; halt: HaltCode | ''; at: number; reason: string; event: OutboxEvent };

/** Reads the schedules of a target, by name. */
export async function listSchedules(redis: RedisClient, fp: string): Promise<Schedule[]> {
  const names = (await redis.smembers(keys.schedules(fp))).sort();
  const all = await Promise.all(names.map((name) => readSchedule(redis, fp, name)));
  return all.filter((schedule) => schedule !== null);
}

/** Reads the schedule, even if it was removed; null if Redis does not know it. */
export async function readSchedule(redis: RedisClient, fp: string, name: string): Promise<Schedule | null> {
  const hash = await redis.hgetall(keys.schedule(fp, name));
  return hash.state === undefined ? null : parseSchedule(name, hash);
}

/** Reads the results of its occurrences, newest first. */
export async function readHistory(redis: RedisClient, fp: string, name: string): Promise<HistoryEntry[]> {
  return JSON.parse((await redis.get(keys.scheduleHistory(fp, name))) ?? '[]');
}

/** Reads its audit trail, newest first. */
export async function readAudit(redis: RedisClient, fp: string, name: string): Promise<AuditEntry[]> {
  return (await redis.lrange(keys.scheduleAudit(fp, name), 0, -1)).map(parseEntry);
}

/**
 * Adds a schedule. `same`: it exists with this definition, and nothing changed. `exists`: another schedule has the name, and `replace` is false.
 * `stale`: `seen` is given, and the schedule with this name now has another revision (0 = there is none); nothing changed. A replaced schedule keeps
 * its history and state; a run that is being made of it is discarded. Repeating it gives `same`.
 */
export async function addSchedule(
  redis: RedisClient,
  fp: string,
  name: string,
  definition: Definition,
  {
    replace,
    protectedList,
    seen = null,
    ...author
  }: Author & { replace: boolean; protectedList: ProtectedList | null; seen?: number | null },
): Promise<'added' | 'same' | 'exists' | 'changed' | 'stale'> {
  const fields = definitionFields(definition);
  const done = await redis.eval(
    addLua,
    7,
    ...[...keysOf(fp, name), keys.scheduleLease(fp, name), keys.schedulesRevision(fp)],
    ...[name, fields.definition, fields.note, replace ? '1' : '', author.at, author.who],
    ...[storedEntry({ ...author, action: 'add' }), storedEntry({ ...author, action: 'change' })],
    protectedList === null ? '' : JSON.stringify(protectedList),
    seen ?? '',
  );
  return done as 'added' | 'same' | 'exists' | 'changed' | 'stale';
}

export type ScheduleActionName = 'pause' | 'resume' | 'remove';

/**
 * Pauses, resumes or removes a schedule for an operator. `event`: the event for receivers if its state changes. `stale`: `seen` is given, and the
 * schedule now has another revision; nothing changed, as with `same`. A resume waives the guard that paused it for the next list. Repeating it
 * changes nothing.
 */
export async function steerSchedule(
  redis: RedisClient,
  fp: string,
  name: string,
  action: ScheduleActionName,
  { seen = null, ...author }: Author & { seen?: number | null },
  event: OutboxEvent | null = null,
): Promise<'changed' | 'same' | 'stale' | 'missing'> {
  const done = await redis.eval(
    steerLua,
    9,
    ...[...keysOf(fp, name), ...outboxKeys(fp), keys.lifted(fp), keys.schedulesRevision(fp)],
    ...[action, name, author.reason, author.who, author.at, storedEntry({ ...author, action })],
    ...[removedKeptMs, ...eventArguments(event), newActionId(), seen ?? ''],
  );
  return done as 'changed' | 'same' | 'stale' | 'missing';
}

const removedKeptMs = 30 * 86_400_000;

function keysOf(fp: string, name: string): string[] {
  return [
    ...[keys.schedule(fp, name), keys.schedules(fp), keys.scheduleAudit(fp, name), keys.scheduleHistory(fp, name)],
    keys.scheduleCarriedOver(fp, name),
  ];
}

type UpdatedField =
  | ('after' | 'waiting' | 'waived' | 'rows')
  | ('heartbeatDue' | 'carriedOver' | 'retriedFrom')
  | ('preparing' | 'lastRun' | 'lastState' | 'lastConclusion' | 'lastEndedAt' | 'lastSha256')
  | ('toArchive' | 'protectedList');

/** The changes that reconciling writes to a schedule. */
export type ScheduleUpdate = {
  /** Fields of the record; '' removes a value. */
  fields?: Partial<Record<UpdatedField, string | number>>;
  history?: HistoryEntry[];
  /**
   * The occurrence that the run is made for: over all processes, only one makes a run for an occurrence. Its carried-over ids replace the schedule's.
   */
  claim?: { occurrence: number; run: string; carriedOver: CarriedOver | null };
  /** Whether to write only if the schedule is active; otherwise also if it is paused. */
  ifActive?: boolean;
  /** The event for receivers. */
  event?: OutboxEvent | null;
  /** A pause of the schedule, if it is active; otherwise nothing is written. */
  pause?: GuardPause | null;
};

/**
 * Writes the whole update, or nothing. `lost`: another process holds the lease now. `stopped`: the schedule is removed, or is not active and has to
 * be. `taken`: the occurrence has another run. Repeating a claim after `done` changes nothing and gives `done`, whichever process holds the lease by
 * then.
 */
export async function updateSchedule(
  redis: RedisClient,
  { fp, name, token }: { fp: string; name: string; token: string },
  { fields: others = {}, history, claim, ifActive = false, event = null, pause = null }: ScheduleUpdate,
): Promise<'done' | 'lost' | 'stopped' | 'taken'> {
  const carriedOver = claim?.carriedOver ?? null;
  const fields = {
    ...others,
    ...(claim !== undefined && { carriedOver: carriedOver === null ? '' : JSON.stringify(carriedOver) }),
    ...(pause !== null && pausedFields(pause)),
  };
  const done = await redis.eval(
    updateLua,
    9,
    ...[keys.schedule(fp, name), keys.scheduleHistory(fp, name), keys.scheduleLease(fp, name)],
    ...[keys.scheduleOccurrence(fp, name, claim?.occurrence ?? 0), ...outboxKeys(fp)],
    ...[keys.scheduleCarriedOver(fp, name), keys.scheduleCarriedOverNext(fp, name, claim?.run ?? '')],
    keys.scheduleAudit(fp, name),
    ...[
      token,
      ifActive || pause !== null ? '1' : '',
      claim?.run ?? '',
      claimKeptMs,
      history ? JSON.stringify(history) : '',
    ],
    ...[...eventArguments(event), carriedOver === null ? '' : '1'],
    ...[...eventArguments(pause?.event ?? null), pause === null ? '' : pauseEntry(pause)],
    ...Object.entries(fields).flat(),
  );
  return done as 'done' | 'lost' | 'stopped' | 'taken';
}

function pausedFields({ guard, halt, at, reason }: GuardPause) {
  return { state: 'paused', pausedBy: guard, halt, reason, who: '', changedAt: at, waiting: '', waived: '' };
}

/** The entry in the audit trail. `guard`: the guard that paused it. */
function pauseEntry({ guard, at, reason }: GuardPause): string {
  return storedEntry({ action: 'pause', at, by: 'guard', who: '', guard, reason });
}

const claimKeptMs = 7 * 86_400_000; // `after` prevents a second run of older occurrences

/**
 * KEYS  1 schedule  2 schedules  3 audit  4 history  5 carried over  6 lease  7 revision of all schedules
 * ARGV  1 name  2 definition  3 note  4 '1' to replace another one  5 now  6 who  7 audit entry of an addition  8 of a change
 *       9 content of the file of protected ids, or ''  10 the revision that was seen, 0 = there was none, '' = not seen
 * returns added, same, exists, stale or changed. Repeating it gives same.
 */
const addLua = `
local state = redis.call('HGET', KEYS[1], 'state')
local isThere = state and state ~= 'removed'
if isThere then
  local same = redis.call('HGET', KEYS[1], 'definition') == ARGV[2] and redis.call('HGET', KEYS[1], 'note') == ARGV[3]
  if same then return 'same' end
  if ARGV[4] ~= '1' then return 'exists' end
end
local revision = isThere and redis.call('HGET', KEYS[1], 'revision') or '0'
if ARGV[10] ~= '' and ARGV[10] ~= revision then return 'stale' end
if isThere then
  redis.call('HSET', KEYS[1], 'definition', ARGV[2], 'note', ARGV[3], 'after', ARGV[5], 'protectedList', ARGV[9])
  redis.call('HDEL', KEYS[1], 'waiting', 'waived')
else
  redis.call('HSET', KEYS[1], 'definition', ARGV[2], 'note', ARGV[3], 'after', ARGV[5],
    'state', 'active', 'reason', '', 'who', ARGV[6], 'changedAt', ARGV[5], 'protectedList', ARGV[9])
  redis.call('HDEL', KEYS[1], 'waiting', 'waived', 'pausedBy', 'actionId', 'lastSha256', 'rows', 'toArchive', 'heartbeatDue', 'carriedOver', 'retriedFrom')
  redis.call('UNLINK', KEYS[5])
  for _, key in ipairs({KEYS[1], KEYS[3], KEYS[4]}) do redis.call('PERSIST', key) end
  redis.call('SADD', KEYS[2], ARGV[1])
end
redis.call('HINCRBY', KEYS[1], 'revision', 1)
redis.call('INCR', KEYS[7])
redis.call('DEL', KEYS[6]) -- a process that makes a run of it now uses the old definition
${noteAuditLua('KEYS[3]', 'isThere and ARGV[8] or ARGV[7]')}
return isThere and 'changed' or 'added'
`;

/**
 * KEYS  1 schedule  2 schedules  3 audit  4 history  5 carried over  6 outbox  7 events  8 lifted actions
 *       9 revision of all schedules
 * ARGV  1 pause, resume or remove  2 name  3 reason  4 who  5 now  6 audit entry  7 ms to keep a removed one  8 id of the event
 *       9 event or ''  10 names the action  11 the revision that was seen, or ''
 * returns changed, same, stale or missing. A pause of a schedule that is paused already is kept for its audit trail. Occurrences that passed while it
 * was paused are not backfilled.
 */
const steerLua = `${addEventFunction}${liftedFunction}
local state = redis.call('HGET', KEYS[1], 'state')
if not state then return 'missing' end
local is = redis.call('HMGET', KEYS[1], 'actionId', 'pausedBy', 'who', 'reason')
if ARGV[1] == 'pause' and state == 'paused' then
  if is[1] and (is[3] == ARGV[4] and (is[4] == ARGV[3] or ARGV[3] == '')) then return 'same' end
  -- The pause of an operator replaces the pause of a guard, as the stronger one. A colleague's pause stays, and both end with the next resume.
  if not is[1] then redis.call('HSET', KEYS[1], 'actionId', ARGV[10], 'who', ARGV[4], 'reason', ARGV[3], 'changedAt', ARGV[5]) end
  ${noteAuditLua('KEYS[3]', 'ARGV[6]')}
  redis.call('HINCRBY', KEYS[1], 'revision', 1)
  redis.call('INCR', KEYS[9])
  return 'changed'
end
local allowed = {
  pause = {active = 'paused'},
  resume = {paused = 'active'},
  remove = {active = 'removed', paused = 'removed'},
}
local next = allowed[ARGV[1]][state]
if not next then return 'same' end
if ARGV[11] ~= '' and ARGV[11] ~= (redis.call('HGET', KEYS[1], 'revision') or '0') then return 'stale' end
redis.call('HINCRBY', KEYS[1], 'revision', 1)
redis.call('INCR', KEYS[9])
redis.call('HSET', KEYS[1], 'state', next, 'reason', ARGV[3], 'who', ARGV[4], 'changedAt', ARGV[5])
redis.call('HDEL', KEYS[1], 'waiting')
if next == 'paused' then
  redis.call('HSET', KEYS[1], 'actionId', ARGV[10])
else
  noteLifted(KEYS[8], is[1])
  redis.call('HDEL', KEYS[1], 'actionId')
end
if next == 'active' then
  redis.call('HSET', KEYS[1], 'after', ARGV[5], 'waived', redis.call('HGET', KEYS[1], 'pausedBy') or '', 'pausedBy', '')
else
  redis.call('HSET', KEYS[1], 'pausedBy', '', 'waived', '')
end
addEvent(KEYS[6], KEYS[7], ARGV[8], ARGV[9])
${noteAuditLua('KEYS[3]', 'ARGV[6]')}
if next == 'removed' then
  redis.call('SREM', KEYS[2], ARGV[2])
  for _, key in ipairs({KEYS[1], KEYS[3], KEYS[4], KEYS[5]}) do redis.call('PEXPIRE', key, ARGV[7]) end
end
return 'changed'
`;

/**
 * KEYS  1 schedule  2 history  3 lease  4 occurrence  5 outbox  6 events  7 carried over  8 carried over by the run for the occurrence  9 audit
 * ARGV  1 token that must be in the lease  2 '1' if the schedule must be active  3 run for the occurrence or ''  4 ms to keep it  5 history or ''
 *       6 id of the event  7 event or ''  8 '1' if the run for the occurrence carries ids over  9 id of the event of a pause  10 that event or ''
 *       11 audit entry of a pause or ''  12… fields and values
 * returns done, lost, stopped or taken. If the occurrence was claimed for this run before, it changes nothing: the earlier answer may have been lost.
 */
const updateLua = `${addEventFunction}
if ARGV[3] ~= '' and redis.call('GET', KEYS[4]) == ARGV[3] then return 'done' end
if redis.call('GET', KEYS[3]) ~= ARGV[1] then return 'lost' end
local state = redis.call('HGET', KEYS[1], 'state') or 'removed'
if state == 'removed' or ARGV[2] == '1' and state ~= 'active' then return 'stopped' end
if ARGV[8] == '1' and redis.call('EXISTS', KEYS[8]) == 0 then return 'lost' end -- it hung for an hour
if ARGV[3] ~= '' then
  if not redis.call('SET', KEYS[4], ARGV[3], 'NX', 'PX', ARGV[4]) then return 'taken' end
  redis.call('UNLINK', KEYS[7])
  if ARGV[8] == '1' then
    redis.call('RENAME', KEYS[8], KEYS[7])
    redis.call('PERSIST', KEYS[7])
  end
end
if ARGV[5] ~= '' then redis.call('SET', KEYS[2], ARGV[5], 'KEEPTTL') end
addEvent(KEYS[5], KEYS[6], ARGV[6], ARGV[7])
addEvent(KEYS[5], KEYS[6], ARGV[9], ARGV[10])
if ARGV[11] ~= '' then
  redis.call('HINCRBY', KEYS[1], 'revision', 1)
  ${noteAuditLua('KEYS[9]', 'ARGV[11]')}
end
if #ARGV > 11 then redis.call('HSET', KEYS[1], unpack(ARGV, 12)) end
return 'done'
`;
