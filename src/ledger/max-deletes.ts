import { ExpungeError } from '../errors.ts';
import { count } from '../format.ts';
import { chunkSize } from '../model/row.ts';
import type { RedisClient } from '../redis/client.ts';
import { keys } from '../redis/keys.ts';
import { type AuditEntry, storedEntry } from './audit.ts';
import { headerBytes } from './cell.ts';
import { decodeChunk } from './manifest.ts';
import { changeMaxDeletesLua } from './max-deletes.lua.ts';
import type { Run } from './run.ts';
import { readNumbered } from './tally.ts';

const keysPerRead = 100;

/**
 * The place up to which a run sends its first `maxDeletes` ids, in the form of its record; '' = all. Its chunks are written, so their sizes never
 * change.
 */
export async function findSendable(
  redis: RedisClient,
  { id, chunks, ids }: Pick<Run, 'id' | 'chunks' | 'ids'>,
  maxDeletes: number | null,
): Promise<string> {
  if (maxDeletes === null || maxDeletes >= ids) return '';
  let left = maxDeletes;
  for await (const { n, size } of readSizes(redis, id, chunks)) {
    if (size > left) return `${n}:${left}`;
    left -= size;
  }
  return '';
}

/** The number of ids of a chunk that may be sent. Pure; the scripts do the same in Lua. */
export function countSendable({ sendable }: Pick<Run, 'sendable'>, chunk: number): number {
  const [last, ids] = parsePlace(sendable);
  return chunk < last ? Number.POSITIVE_INFINITY : chunk === last ? ids : 0;
}

/** The number of chunks of a run that may be sent, at least in part. Pure; the scripts do the same in Lua. */
export function sendableChunks(sendable: string, chunks: number): number {
  const [last, ids] = parsePlace(sendable);
  return Math.min(chunks, last + Math.min(ids, 1));
}

function parsePlace(sendable: string): [chunk: number, ids: number] {
  const [, chunk, ids] = /^(\d+):(\d+)$/.exec(sendable) ?? [];
  return chunk === undefined ? [Number.POSITIVE_INFINITY, 0] : [Number(chunk), Number(ids)];
}

/**
 * Changes the maximum number of ids that a run may send, null = all, unless it is finalized. `loosened`: the note for a run of a plan, '' = nothing.
 * Repeating it changes nothing. Throws USAGE if ids beyond that place may have been sent already.
 */
export async function changeMaxDeletes(
  redis: RedisClient,
  run: Run,
  maxDeletes: number | null,
  by: AuditEntry,
  loosened = '',
): Promise<void> {
  const sendable = await findSendable(redis, run, maxDeletes);
  const all = [keys.run(run.id), keys.open(run.id), keys.deferred(run.id), keys.audit(run.id)];
  const answer = await redis.eval(
    changeMaxDeletesLua,
    all.length,
    ...all,
    maxDeletes ?? '',
    sendable,
    storedEntry(by),
    loosened,
  );
  const [, isDone, enqueued] = answer as [string, number, number];
  if (isDone === 1) return;
  const least = Math.min(await sumSizes(redis, run.id, enqueued), run.maxDeletes ?? Number.POSITIVE_INFINITY);
  throw new ExpungeError(
    'USAGE',
    `--max-deletes ${maxDeletes}: run ${run.id} may have sent up to ${count(least)} ids already`,
    {
      next: `give ${least} or more; until then the run stays as it is`,
    },
  );
}

async function sumSizes(redis: RedisClient, id: string, chunks: number): Promise<number> {
  let sum = 0;
  for await (const { size } of readSizes(redis, id, chunks)) sum += size;
  return sum;
}

/** The number of ids of each chunk, including chunks whose outcomes Redis has lost: they may have been sent before. */
async function* readSizes(redis: RedisClient, id: string, chunks: number): AsyncGenerator<{ n: number; size: number }> {
  for await (const part of readNumbered(redis, (n) => keys.ledger(id, n), chunks, keysPerRead))
    for (const { n, bytes } of part)
      yield { n, size: bytes === null ? await sizeOfLost(redis, id, n) : (bytes.length - headerBytes) / 2 };
}

/** The number of ids according to the manifest of a chunk. Without a manifest, the most that a chunk can have. */
async function sizeOfLost(redis: RedisClient, id: string, n: number): Promise<number> {
  const manifest = await redis.getBuffer(keys.manifest(id, n));
  return manifest === null ? chunkSize : decodeChunk(n, manifest).ids.length;
}
