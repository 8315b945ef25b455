import { ExpungeError } from '../errors.ts';
import { chunkSizes, countChunks, countSettledRows } from '../input/chunk-ids.ts';
import type { Spool } from '../input/spool.ts';
import type { ReadOutcome } from '../model/outcome.ts';
import { definitionsText, sumIds, usedResources } from '../model/resource.ts';
import type { Chunk, SettledBlock } from '../model/row.ts';
import { hashList, type Target } from '../model/target.ts';
import type { RedisClient } from '../redis/client.ts';
import { keys } from '../redis/keys.ts';
import { readServerIdentity } from '../redis/server-identity.ts';
import { finalizeFunction } from './active-time.lua.ts';
import { type NotedPlan, noteAuditLua, storedEntry } from './audit.ts';
import { revisionFunctions } from './changes.lua.ts';
import { makeRecordLua, otherCanary, serverIdentityArguments } from './doubt.lua.ts';
import { hasRemains } from './end-run.ts';
import { forgetExpired } from './list-runs.ts';
import { writePart } from './manifest.ts';
import { findSendable } from './max-deletes.ts';
import { readMinGrace } from './min-grace.ts';
import { isOver, newRunId, type Run, readRun, schemaVersion } from './run.ts';
import { givenRules, noRules, optionalFields, type RunRules, type RunSettings, storedRules } from './run-rules.ts';
import { startTimeFunctions } from './start-time.lua.ts';

/** The result of planning and the rules that the user gave; it becomes the run record. */
export type RunPlan = RunRules & {
  target: Target;
  list: string;
  sha256: string;
  files: string[];
  layout: string; // differs if the same rows are in other files or on other lines
  rows: number;
  ids: number;
  chunks: number;
  blocks: number;
  settled: Record<ReadOutcome, number>;
  protectedRead: number | null;
  canary: string; // as in the record
  retryOf: string; // the run that these ids come from; '' = none
  mayBeGone?: number; // ids of that run that it may have deleted
  definitions: string; // as in the record
  note: string;
  detached: boolean;
  who: string;
  command: string;
  rehearsalOf?: string | undefined; // the base URL that a rehearsal stands for
};

/** Who makes a run, why, which run it retries, and how it is to be deleted. */
type Origin = Pick<RunPlan, 'note' | 'retryOf' | 'mayBeGone' | 'detached' | 'who' | 'command' | 'rehearsalOf'>;

/** Plans a run for a list that was read. `options`: the rules that are not settings, as a command gives them. Pure. */
export function planRun(
  settings: RunSettings,
  target: Target,
  spool: Spool,
  { options, ...origin }: Origin & { options: Record<string, unknown> },
): RunPlan {
  const rungs = settings.canary ?? [];
  const { chunks, blocks, firstIds } = countChunks(spool, chunkSizes(rungs));
  return {
    ...noRules,
    ...givenRules({ config: settings, options }),
    target,
    list: hashList(target, spool.sha256, origin.retryOf),
    sha256: spool.sha256,
    files: spool.files,
    layout: [spool.layout, ...rungs].join(' '),
    rows: spool.rows,
    ids: sumIds(spool.ids),
    chunks,
    blocks,
    settled: countSettledRows(spool),
    protectedRead: spool.protectedList?.ids ?? null,
    canary: storedCanary(rungs, firstIds),
    definitions: definitionsText(usedResources(spool.ids)),
    ...origin,
  };
}

/** The rungs of a canary that end before the list does, each with the number of ids and chunks up to it: `1:1 10:2 100:3`. */
function storedCanary(rungs: readonly number[], firstIds: readonly number[]): string {
  return rungs
    .map((_, i) => chunkSizes(rungs.slice(0, i + 1)).length)
    .filter((chunks) => firstIds.length >= chunks)
    .map((chunks) => `${firstIds[chunks - 1]}:${chunks}`)
    .join(' ');
}

/** The rungs of a run's canary that are still ahead, in ids. */
export function rungsLeft({ canary }: Pick<RunPlan, 'canary'>): number[] {
  return [...canary.matchAll(/(\d+):/g)].map(([, ids]) => Number(ids));
}

/** Finds the last run of this list, unfinished or finalized, or null. */
export async function findRunOfList(redis: RedisClient, list: string): Promise<Run | null> {
  const id = await redis.get(keys.list(list));
  return id === null ? null : readRun(redis, id);
}

/**
 * Claims the list for one run id, and returns the id that has it. An id that a dead producer left is used again, so that the same command makes the
 * same run. If `isFree` is true for a run, exactly one caller replaces its id. `now`: ms since 1970.
 */
export async function claimList(
  redis: RedisClient,
  list: string,
  now: number,
  isFree: (run: Run) => boolean = isOver,
): Promise<string> {
  const id = newRunId(now);
  if ((await redis.set(keys.list(list), id, 'NX')) === 'OK') return id;
  const holder = (await redis.get(keys.list(list))) ?? id;
  const run = await readRun(redis, holder);
  if (run === null ? !(await hasRemains(redis, holder)) : !isFree(run)) return holder;
  const replaced = await redis.eval(replaceLua, 1, keys.list(list), holder, id);
  return String(replaced);
}

/** Additional steps before a run can start. */
export type BeforeStart = {
  /** Links the run in other records, after everything of the run is written. If it throws, the run stays unfinished. */
  link?(): Promise<void>;
  /** The plan that the run carries out, the only person who is allowed to loosen its rules ('' = anyone), and its audit entry, if any. */
  applied?: { plan: string; approver: string; noted: NotedPlan | null } | null;
};

/**
 * Writes the run: record, chunks, blocks, and last, in one write, the state `planned` with everything that the run obeys. Nothing of it is sent
 * before. Repeating it after a crash writes the same bytes, or all of them again if the same rows now come from other files: a run belongs to the
 * producer that completes it. A run that is planned already stays as it is. Throws USAGE if another producer has taken over with other files.
 */
export async function writeRun(
  redis: RedisClient,
  id: string,
  plan: RunPlan,
  parts: Iterable<Chunk | SettledBlock> | AsyncIterable<Chunk | SettledBlock>,
  now: number,
  onProgress: (chunks: number) => void,
  { link, applied = null }: BeforeStart = {},
): Promise<void> {
  const server = serverIdentityArguments(await readServerIdentity(redis, id));
  const [fromProducer, others] = [producerFields(plan), otherFields(plan, now)].map((fields) =>
    Object.entries(fields).flat(),
  );
  const missing = [optionalFields.length, ...optionalFields];
  const record = [plan.canaryOf, ...missing, fromProducer!.length, ...fromProducer!, ...others!];
  const before = await redis.eval(makeRecordLua, 1, keys.run(id), ...server, ...record);
  if (before === otherCanary) {
    throw new ExpungeError(
      'USAGE',
      `run ${id} of the same list was started with a different --canary, and was not written completely`,
      {
        next: 'run the command as it was; its list is then written to the end',
      },
    );
  }
  if (before !== '' && before !== 'preparing') return;
  await redis.zadd(keys.runs, now, id);
  await forgetExpired(redis).catch(() => {}); // best effort: while a server of a cluster is away, its runs look as if they had expired
  await writeParts(redis, id, plan.layout, parts, onProgress);
  const sendable = await findSendable(redis, { ...plan, id }, plan.maxDeletes);
  await link?.();
  const entry = applied?.noted ? storedEntry(applied.noted) : '';
  const minGraceMs = (await readMinGrace(redis, plan.target.fp))?.ms ?? 0;
  const ofPlan = applied === null ? [] : ['plan', applied.plan, 'approver', applied.approver];
  const whole = [
    plan.layout,
    entry,
    ...missing,
    'sendable',
    sendable,
    'minGraceMs',
    minGraceMs,
    ...ofPlan,
    ...fromProducer!,
  ];
  if ((await redis.eval(plannedLua, 2, keys.run(id), keys.audit(id), ...whole)) === 1) return;
  throw new ExpungeError('USAGE', `run ${id} is being made of the same rows by another command, from other files`, {
    next: (toType) => `wait until that is done; then the same command resumes it. See: ${toType('status', id)}`,
  });
}

// KEYS 1 list  ARGV 1 expected id  2 id that replaces it; returns the id that is there afterwards
const replaceLua = `
local holder = redis.call('GET', KEYS[1])
if holder == ARGV[1] or not holder then redis.call('SET', KEYS[1], ARGV[2]) return ARGV[2] end
return holder
`;

// KEYS 1 run  2 audit  ARGV 1 layout  2 audit entry or ''  3 number of fields that may be missing  4… those fields  then fields and values
// Does nothing in any state but `preparing`. Returns 0 if the run is being prepared with another layout. Actions that came while the run was
// written take effect here.
const plannedLua = `${finalizeFunction}${revisionFunctions}${startTimeFunctions}
local is = redis.call('HMGET', KEYS[1], 'state', 'layout')
if is[1] ~= 'preparing' then return 1 end
if is[2] ~= ARGV[1] then return 0 end
local first = 4 + tonumber(ARGV[3])
redis.call('HDEL', KEYS[1], unpack(ARGV, 4, first - 1))
redis.call('HSET', KEYS[1], 'state', 'planned', 'acceptedAt', redisTime(), unpack(ARGV, first))
setStart(KEYS[1])
noteEdit(KEYS[1])
if ARGV[2] ~= '' then ${noteAuditLua('KEYS[2]', 'ARGV[2]')} end
local waiting, now = redis.call('HMGET', KEYS[1], 'cancelBy', 'pauses'), redisTime()
local action = waiting[1] and cjson.decode(waiting[1]) or waiting[2] and cjson.decode(waiting[2])[1]
if not action then return 1 end
redis.call('HSET', KEYS[1], 'reason', action.reason, 'by', action.by or 'operator', 'who', action.who, 'changedAt', now)
if waiting[1] then
  finalize('cancelled', true, KEYS[1])
else
  redis.call('HSET', KEYS[1], 'state', 'paused')
  noteChange(KEYS[1], now)
end
return 1
`;

/** All fields of a plan, and the first values of the run's other fields. */
type RunRecord = Record<
  Exclude<keyof RunPlan, 'target' | 'settled' | 'mayBeGone' | 'rehearsalOf' | 'definitions'>,
  string | number
> &
  Partial<Record<keyof Run | ReadOutcome | 'epoch', string | number>>;

type ProducerField = keyof RunRules | 'layout' | 'files' | 'command' | 'note' | 'who' | 'protectedRead' | 'detached';

/** The fields that a producer replaces when it takes over, and that the run obeys once it is planned. */
function producerFields(plan: RunPlan) {
  return {
    layout: plan.layout,
    files: JSON.stringify(plan.files),
    command: plan.command,
    note: plan.note,
    who: plan.who,
    createdBy: plan.who,
    protectedRead: plan.protectedRead ?? '',
    detached: plan.detached ? 1 : 0,
    ...storedRules(plan),
  };
}

/** The fields that are the same for every producer of the run. */
function otherFields({ target, settled, ...plan }: RunPlan, now: number) {
  return {
    state: 'preparing',
    schema: schemaVersion,
    baseUrl: target.baseUrl,
    account: target.account,
    fp: target.fp,
    sha256: plan.sha256,
    list: plan.list,
    rows: plan.rows,
    ids: plan.ids,
    chunks: plan.chunks,
    blocks: plan.blocks,
    settled: 0,
    next: 0,
    epoch: 0,
    ...settled,
    canary: plan.canary,
    sendable: '',
    retryOf: plan.retryOf,
    ...(plan.mayBeGone ? { mayBeGone: plan.mayBeGone } : {}),
    ...(plan.definitions === '' ? {} : { definitions: plan.definitions }),
    ...(plan.rehearsalOf === undefined ? {} : { rehearsalOf: plan.rehearsalOf }),
    createdAt: now,
  } satisfies Omit<RunRecord, ProducerField>;
}

const writesAtOnce = 16;

async function writeParts(
  redis: RedisClient,
  id: string,
  layout: string,
  parts: Iterable<Chunk | SettledBlock> | AsyncIterable<Chunk | SettledBlock>,
  onProgress: (chunks: number) => void,
): Promise<void> {
  let chunks = 0;
  let writes: Promise<boolean>[] = [];
  for await (const part of parts) {
    if ('ids' in part) chunks++;
    writes.push(writePart(redis, id, layout, part));
    if (writes.length < writesAtOnce) continue;
    if ((await Promise.all(writes)).includes(false)) return; // another producer has written the run, or is writing it
    writes = [];
    onProgress(chunks);
  }
  await Promise.all(writes);
}
