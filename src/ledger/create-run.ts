import type { Config } from '../config/settings.ts';
import { ExpungeError } from '../errors.ts';
import { countChunks, settledIn } from '../input/chunk-ids.ts';
import type { Spool } from '../input/spool.ts';
import type { ReadOutcome } from '../model/outcome.ts';
import { type Rate, storedRate } from '../model/rate.ts';
import { sumIds } from '../model/resource.ts';
import type { Chunk, SettledBlock } from '../model/row.ts';
import { listOf, type Target } from '../model/target.ts';
import type { RedisClient } from '../redis/client.ts';
import { keys } from '../redis/keys.ts';
import { readServerIdentity } from '../redis/server-identity.ts';
import { makeRecordLua, serverIdentityArguments } from './doubt.lua.ts';
import { hasRemains } from './end-run.ts';
import { forgetExpired } from './list-runs.ts';
import { writePart } from './manifest.ts';
import { isOver, newRunId, type Priority, type Run, readRun, schemaVersion } from './run.ts';

/** What planning found out; it becomes the run record. */
export type RunPlan = {
  target: Target;
  list: string;
  sha256: string;
  files: string[];
  layout: string; // differs where the same rows stand in other files or on other lines
  rows: number;
  ids: number;
  chunks: number;
  blocks: number;
  settled: Record<ReadOutcome, number>;
  protectedRead: number | null;
  rate: Rate | null;
  burst: number | null;
  priority: Priority;
  onStatus: string;
  expectAbsent: boolean;
  note: string;
  keepMs: number;
  detached: boolean;
  who: string;
  command: string;
};

/** The last run of this list, unfinished or sealed, or null. */
export async function findRunOfList(redis: RedisClient, list: string): Promise<Run | null> {
  const id = await redis.get(keys.list(list));
  return id === null ? null : readRun(redis, id);
}

/**
 * Claims the list for one run id. A producer that died left its id there: it is taken up again, so that the same command makes the
 * same run. The id of a run that is over is replaced, once, whoever comes first.
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

// KEYS 1 list  ARGV 1 id expected there  2 id that replaces it; returns the id that is there afterwards
const replaceLua = `
local holder = redis.call('GET', KEYS[1])
if holder == ARGV[1] or not holder then redis.call('SET', KEYS[1], ARGV[2]) return ARGV[2] end
return holder
`;

// KEYS 1 run  ARGV 1 layout; does nothing in any other state than `preparing`. Returns 0 if it is being prepared with another layout
const plannedLua = `
local is = redis.call('HMGET', KEYS[1], 'state', 'layout')
if is[1] ~= 'preparing' then return 1 end
if is[2] ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'state', 'planned')
return 1
`;

/**
 * Writes the run: record, chunks, blocks, and `planned` as the last word. Nothing of it is sent before. Repeating it after any
 * crash writes the same bytes, or, where the same rows come from other files now, all of them anew; a run that is planned already is left
 * as it is. Throws USAGE if another producer took over with other files meanwhile.
 */
export async function writeRun(
  redis: RedisClient,
  id: string,
  plan: RunPlan,
  parts: Iterable<Chunk | SettledBlock> | AsyncIterable<Chunk | SettledBlock>,
  now: number,
  onProgress: (chunks: number) => void,
): Promise<void> {
  const server = serverIdentityArguments(await readServerIdentity(redis, id));
  const before = await redis.eval(makeRecordLua, 1, keys.run(id), ...server, ...recordOf(plan, now));
  if (before !== '' && before !== 'preparing') return;
  await redis.zadd(keys.runs, now, id);
  await forgetExpired(redis).catch(() => {}); // best effort: where a server of a cluster is away, its runs can't be told from expired ones
  await writeParts(redis, id, plan.layout, parts, onProgress);
  if ((await redis.eval(plannedLua, 1, keys.run(id), plan.layout)) === 1) return;
  throw new ExpungeError('USAGE', `run ${id} is being made of the same rows by another command, from other files`, {
    next: `wait until that is done; then the same command goes on with it. See: expunge status ${id}`,
  });
}

/** Fields and values; first those that a producer replaces when it takes over with another layout. */
function recordOf({ target, settled, ...plan }: RunPlan, now: number): (string | number)[] {
  const fields = {
    layout: plan.layout,
    files: JSON.stringify(plan.files),
    command: plan.command,
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
    protectedRead: plan.protectedRead ?? '',
    rate: plan.rate === null ? '' : storedRate(plan.rate),
    burst: plan.burst ?? '',
    priority: plan.priority,
    onStatus: plan.onStatus,
    expectAbsent: plan.expectAbsent ? 1 : 0,
    note: plan.note,
    who: plan.who,
    createdBy: plan.who,
    keepMs: plan.keepMs,
    detached: plan.detached ? 1 : 0,
    createdAt: now,
  };
  return Object.entries(fields).flat();
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
    if ((await Promise.all(writes)).includes(false)) return; // somebody else has written the run, or does
    writes = [];
    onProgress(chunks);
  }
  await Promise.all(writes);
}

/** The settings that a run takes with it. */
export type RunSettings = Pick<Config, 'rate' | 'burst' | 'onStatus' | 'expectAbsent' | 'keep'>;

/** Who makes a run, why, and for whom. */
type Origin = { note: string; detached: boolean; who: string; priority: Priority; command: string };

/** The run that a list becomes. */
export function planRun(settings: RunSettings, target: Target, spool: Spool, origin: Origin): RunPlan {
  return {
    target,
    list: listOf(target, spool.sha256),
    sha256: spool.sha256,
    files: spool.files,
    layout: spool.layout,
    rows: spool.rows,
    ids: sumIds(spool.ids),
    ...countChunks(spool),
    settled: settledIn(spool),
    protectedRead: spool.protectedList?.ids ?? null,
    rate: settings.rate ?? null,
    burst: settings.burst ?? null,
    onStatus: settings.onStatus,
    expectAbsent: settings.expectAbsent,
    keepMs: settings.keep,
    ...origin,
  };
}
