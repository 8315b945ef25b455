import { type OutcomeRow, readBlockRows, readChunkRows } from '../ledger/outcome-rows.ts';
import { isFinalized, type Run } from '../ledger/run.ts';
import type { RedisClient } from '../redis/client.ts';
import { keys } from '../redis/keys.ts';
import { encodeCursor, type FollowCursor } from './follow-cursor.ts';

/**
 * Rows that are written together, and the cursor before them. A reader that resumes from the cursor gets these rows first, in the same order. So a
 * cursor and the number of rows after it say exactly what was written.
 */
export type FollowPart = { cursor: string; rows: OutcomeRow[]; isCorrection: boolean };

const chunksAtOnce = 16;

/**
 * Yields the rows of a run to write since `cursor`, which moves on with each part that the caller has taken. It yields blocks, then corrections, then
 * the chunks whose ids all have an outcome (all chunks if the run is finalized). A settled outcome changes only if a former holder of its chunk had
 * better evidence. The update then notes it in `improved`, and a chunk that was already written gets a correction. Only reads; holds a few chunks in
 * memory. Throws INTERNAL for a chunk that Redis has lost.
 */
export async function* followOutcomes(redis: RedisClient, run: Run, cursor: FollowCursor): AsyncGenerator<FollowPart> {
  for (; cursor.blocks < run.blocks; cursor.blocks++)
    yield* write(run, cursor, await readBlockRows(redis, run, cursor.blocks));
  if (cursor.chunk !== null) {
    yield* writeChunks(redis, run, cursor, [cursor.chunk]);
    if (cursor.chunk !== null) return; // Redis has lost its outcomes; a later call waits for new ones
  }
  // Before the chunks, so that the chunks need no correction for these. In a finalized run, the last corrections.
  yield* writeCorrections(redis, run, cursor);
  const ready = await findReady(redis, run, cursor);
  for (let from = 0; from < ready.length; from += chunksAtOnce)
    yield* writeChunks(redis, run, cursor, ready.slice(from, from + chunksAtOnce));
  if (isFinalized(run.state)) yield* writeCorrections(redis, run, cursor);
}

/** The next part, without its rows that were already written. */
function* write(run: Run, cursor: FollowCursor, rows: OutcomeRow[], isCorrection = false): Generator<FollowPart> {
  const left = rows.slice(cursor.rows);
  if (left.length > 0) yield { cursor: encodeCursor(run.id, cursor), rows: left, isCorrection };
  cursor.rows = 0;
}

async function* writeChunks(
  redis: RedisClient,
  run: Run,
  cursor: FollowCursor,
  numbers: readonly number[],
): AsyncGenerator<FollowPart> {
  for (const { n, rows, isSettled } of await readChunkRows(redis, run, numbers)) {
    if (!isSettled && !isFinalized(run.state)) continue;
    cursor.chunk = n;
    yield* write(run, cursor, rows);
    cursor.written[n] = 1;
    cursor.chunk = null;
  }
}

async function* writeCorrections(redis: RedisClient, run: Run, cursor: FollowCursor): AsyncGenerator<FollowPart> {
  cursor.corrections = Math.min(cursor.corrections, await redis.llen(keys.improved(run.id)));
  for (;;) {
    const { corrections: from } = cursor;
    const entries = await redis.lrange(keys.improved(run.id), from, from + chunksAtOnce - 1);
    if (entries.length === 0) {
      cursor.rows = 0; // for entries that Redis has lost
      break;
    }
    const places = entries.map((entry) => entry.split('.').map(Number) as [chunk: number, index: number]);
    const written = places.filter(([chunk]) => cursor.written[chunk] === 1);
    const chunks = await readChunkRows(redis, run, [...new Set(written.map(([chunk]) => chunk))]);
    const rowAt = new Map(chunks.map(({ n, rows }) => [n, rows]));
    yield* write(
      run,
      cursor,
      written.map(([chunk, index]) => rowAt.get(chunk)![index]!),
      true,
    );
    cursor.corrections += entries.length;
  }
}

/** The chunks that are not written, have no holder and no time at which they are due: their ids are settled, unless Redis has lost something. */
async function findReady(redis: RedisClient, run: Run, { written }: FollowCursor): Promise<number[]> {
  if (isFinalized(run.state)) return [...written.keys()].filter((n) => written[n] === 0);
  const [deferred, open] = await Promise.all([
    redis.zrange(keys.deferred(run.id), 0, '-1'),
    redis.hkeys(keys.open(run.id)),
  ]);
  const left = new Set([...deferred, ...open].map(Number));
  return [...written.subarray(0, run.next).keys()].filter((n) => written[n] === 0 && !left.has(n));
}

/**
 * A text that changes with each outcome of a run, each chunk that is returned and each correction. If it is equal, there is nothing new to write.
 */
export async function readProgress(redis: RedisClient, run: string): Promise<string> {
  const [fields, ...counts] = await Promise.all([
    redis.hmget(keys.run(run), 'state', 'settled', 'next', 'finalized'),
    redis.hlen(keys.open(run)),
    redis.zcard(keys.deferred(run)),
    redis.llen(keys.improved(run)),
  ]);
  return [...fields, ...counts].join(' ');
}
