import { zstdCompressSync, zstdDecompressSync } from 'node:zlib';
import { ExpungeError } from '../errors.ts';
import { count } from '../format.ts';
import type { Spool } from '../input/spool.ts';
import { readHeldBack } from '../input/take-ids.ts';
import type { Resource } from '../model/resource.ts';
import type { Row } from '../model/row.ts';
import type { RedisClient } from '../redis/client.ts';
import { keys } from '../redis/keys.ts';
import type { ScheduleLease } from './lease.ts';

/** The ids that an occurrence left to the next one: the run of the occurrence, the number of ids, the blocks they are in, and their files. */
export type CarriedOver = { run: string; ids: number; blocks: number; files: string[] };

/** The number of ids in a block, and of blocks read at once. */
const [idsPerBlock, blocksAtOnce] = [500, 16];

/** The time after which blocks that no occurrence claims expire, in ms: their process has died. */
const unclaimedKeptMs = 3_600_000;

type StoredRow = [file: number, line: number, resource: Resource, id: string];

/**
 * Writes the ids that a spool holds back, in addition to the ids that the schedule carries over already, which they replace when the run claims its
 * occurrence. Repeating it writes the same.
 */
export async function writeCarriedOver(
  redis: RedisClient,
  { fp, name, signal }: ScheduleLease,
  run: string,
  spool: Spool,
): Promise<CarriedOver> {
  const key = keys.scheduleCarriedOverNext(fp, name, run);
  const carriedOver: CarriedOver = { run, ids: 0, blocks: 0, files: [] };
  const write = async (block: StoredRow[]) => {
    signal.throwIfAborted();
    await redis.hset(key, carriedOver.blocks, zstdCompressSync(JSON.stringify(block)));
    await redis.pexpire(key, unclaimedKeptMs);
    carriedOver.blocks += 1;
  };
  let [block, file]: [StoredRow[], number] = [[], -1];
  for (const { row, isDuplicate } of readHeldBack(spool)) {
    if (isDuplicate) continue;
    if (row.file !== file) carriedOver.files.push(spool.files[row.file]!);
    file = row.file;
    block.push([carriedOver.files.length - 1, row.line, row.resource!, row.id]);
    carriedOver.ids += 1;
    if (block.length < idsPerBlock) continue;
    await write(block);
    block = [];
  }
  if (block.length > 0) await write(block);
  return carriedOver;
}

/**
 * Reads the ids that a schedule carries over, as rows, in order. Throws INTERNAL if Redis no longer has all of them, so that no id is lost unnoticed.
 */
export async function* readCarriedOver(
  redis: RedisClient,
  { fp, name }: Pick<ScheduleLease, 'fp' | 'name'>,
  { run, ids, blocks }: CarriedOver,
): AsyncGenerator<Row[]> {
  let read = 0;
  for (let n = 0; n < blocks; n += blocksAtOnce) {
    const fields = Array.from({ length: Math.min(blocksAtOnce, blocks - n) }, (_, i) => String(n + i));
    for (const bytes of await redis.hmgetBuffer(keys.scheduleCarriedOver(fp, name), ...fields)) {
      const block: StoredRow[] = bytes === null ? [] : JSON.parse(zstdDecompressSync(bytes).toString('utf8'));
      read += block.length;
      yield block.map(([file, line, resource, id]) => ({ file, line, resource, id, reject: null }));
    }
  }
  if (read === ids) return;
  const message = `Redis has lost ids that run ${run} left to the next occurrence: expected ${count(ids)}, got ${count(read)}`;
  throw new ExpungeError('INTERNAL', message, {
    next: 'they are in the lists up to that run; to continue without them, remove the schedule and add it again',
  });
}
