import type { ProtectedList } from '../input/spool.ts';
import type { RedisClient } from '../redis/client.ts';
import { keys } from '../redis/keys.ts';
import type { HistoryEntry } from './history.ts';
import { type Definition, definitionFields, type GuardCode, parseSchedule, type Schedule } from './schedule.ts';
import { addLua, settleLua, steerLua } from './schedule-store.lua.ts';

/** Who does something to a schedule, when and why; `who` is '' for a guard. */
export type Order = { at: number; by: 'operator' | 'guard'; who: string; reason: string };

/** A line of the audit trail. `guard`: the one that did it. */
export type AuditEntry = Order & { guard?: GuardCode } & { action: 'add' | 'change' | 'pause' | 'resume' | 'remove' };

/** The schedules of a target, by name. */
export async function listSchedules(redis: RedisClient, fp: string): Promise<Schedule[]> {
  const names = (await redis.smembers(keys.schedules(fp))).sort();
  const all = await Promise.all(names.map((name) => readSchedule(redis, fp, name)));
  return all.filter((schedule) => schedule !== null);
}

/** The schedule, a removed one too; null if Redis doesn't know it. */
export async function readSchedule(redis: RedisClient, fp: string, name: string): Promise<Schedule | null> {
  const hash = await redis.hgetall(keys.schedule(fp, name));
  return hash.state === undefined ? null : parseSchedule(name, hash);
}

/** What became of its slots, newest first. */
export async function readHistory(redis: RedisClient, fp: string, name: string): Promise<HistoryEntry[]> {
  return JSON.parse((await redis.get(keys.scheduleHistory(fp, name))) ?? '[]');
}

/** Who did what to it, newest first. */
export async function readAudit(redis: RedisClient, fp: string, name: string): Promise<AuditEntry[]> {
  return (await redis.lrange(keys.scheduleAudit(fp, name), 0, -1)).map((line) => JSON.parse(line));
}

/**
 * Adds a schedule. `same`: it is there, exactly so, and nothing changed. `exists`: another one has the name, and `replace` is false.
 * What is replaced keeps its history, and its state; a run that is being made of it is given up.
 */
export async function addSchedule(
  redis: RedisClient,
  fp: string,
  name: string,
  definition: Definition,
  { replace, protectedList, ...order }: Order & { replace: boolean; protectedList: ProtectedList | null },
): Promise<'added' | 'same' | 'exists' | 'changed'> {
  const fields = definitionFields(definition);
  const done = await redis.eval(
    addLua,
    5,
    ...[...keysOf(fp, name), keys.scheduleHand(fp, name)],
    ...[name, fields.definition!, fields.note!, replace ? '1' : '', order.at, order.who],
    ...[auditLine({ ...order, action: 'add' }), auditLine({ ...order, action: 'change' })],
    protectedList === null ? '' : JSON.stringify(protectedList),
  );
  return done as 'added' | 'same' | 'exists' | 'changed';
}

export type ScheduleAction = 'pause' | 'resume' | 'remove';

/**
 * Pauses, resumes or removes a schedule. The state before and after; equal if there was nothing to do, 'missing' if it isn't there. `guard`
 * names the guard that asks for a pause: who resumes it lets the next list pass that one.
 */
export async function steerSchedule(
  redis: RedisClient,
  fp: string,
  name: string,
  action: ScheduleAction,
  order: Order & { guard?: GuardCode },
): Promise<[Schedule['state'] | 'missing', Schedule['state'] | 'missing']> {
  const states = await redis.eval(
    steerLua,
    4,
    ...keysOf(fp, name),
    ...[action, name, order.reason, order.who, order.at, order.guard ?? '', auditLine({ ...order, action })],
    removedKeptMs,
  );
  return states as [Schedule['state'] | 'missing', Schedule['state'] | 'missing'];
}

const removedKeptMs = 30 * 86_400_000;

function keysOf(fp: string, name: string): string[] {
  return [keys.schedule(fp, name), keys.schedules(fp), keys.scheduleAudit(fp, name), keys.scheduleHistory(fp, name)];
}

function auditLine(entry: AuditEntry): string {
  return JSON.stringify(entry);
}

type SettledField =
  | ('after' | 'waiting' | 'waived' | 'rows')
  | ('preparing' | 'lastRun' | 'lastState' | 'lastEndedAt' | 'lastSha256' | 'toArchive' | 'protectedList');

/** What is written by whoever attends to a schedule. */
export type Settlement = {
  /** Fields of the record; '' takes a value away. */
  fields?: Partial<Record<SettledField, string | number>>;
  history?: HistoryEntry[];
  /** The slot this run is made for: one run for each slot, whoever else makes one. */
  claim?: { slot: number; run: string };
  /** Only if the schedule is active. */
  ifActive?: boolean;
};

/**
 * Writes it, all or nothing. `lost`: somebody else attends to the schedule now. `stopped`: it isn't active any more. `taken`: there is a run
 * for this slot.
 */
export async function settle(
  redis: RedisClient,
  { fp, name, token }: { fp: string; name: string; token: string },
  { fields = {}, history, claim, ifActive = false }: Settlement,
): Promise<'done' | 'lost' | 'stopped' | 'taken'> {
  const done = await redis.eval(
    settleLua,
    4,
    ...[keys.schedule(fp, name), keys.scheduleHistory(fp, name), keys.scheduleHand(fp, name)],
    keys.scheduleSlot(fp, name, claim?.slot ?? 0),
    ...[token, ifActive ? '1' : '', claim?.run ?? '', claimKeptMs, history ? JSON.stringify(history) : ''],
    ...Object.entries(fields).flat(),
  );
  return done as 'done' | 'lost' | 'stopped' | 'taken';
}

const claimKeptMs = 7 * 86_400_000; // `after` keeps older slots from being seen to again
