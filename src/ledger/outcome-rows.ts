import { ExpungeError } from '../errors.ts';
import type { Resource } from '../model/outcome.ts';
import type { Chunk } from '../model/row.ts';
import type { RedisClient } from '../redis/client.ts';
import { keys } from '../redis/keys.ts';
import { readValues } from '../redis/read-values.ts';
import { fateOf } from './cell.ts';
import { decodeLedgerChunk, headerBytes, type LedgerChunk } from './cells.ts';
import { decodeBlock, decodeChunk } from './manifest.ts';
import { type Page, rowsOfBlock, rowsOfChunk } from './outcome-row.ts';
import { readNumbered } from './read-numbered.ts';
import type { Run } from './run.ts';

const windowSize = 16;

/**
 * The rows of one resource, a chunk a page. Only the chunks of one resource follow each other in input order; those of the
 * other may lie anywhere between them, so each resource is read on its own and passes the manifest of the other by.
 */
export async function* readChunkPages(redis: RedisClient, run: Run, resource: Resource): AsyncGenerator<Page> {
  for await (const window of readNumbered(redis, (n) => keys.manifest(run.id, n), run.chunks, windowSize)) {
    const all = window.map(({ n, bytes }) => decodeChunk(n, present(run, `manifest chunk ${n}`, bytes)));
    const chunks = all.filter((chunk) => chunk.resource === resource);
    const ledgers = await readLedgers(redis, run, chunks);
    const excerpts = await Promise.all(chunks.map((chunk, i) => readExcerpts(redis, run, chunk, ledgers[i]!)));
    for (const [i, chunk] of chunks.entries()) yield rowsOfChunk(run, chunk, ledgers[i]!, excerpts[i]!);
  }
}

/** The rows settled while reading, a block a page. */
export async function* readBlockPages(redis: RedisClient, run: Run): AsyncGenerator<Page> {
  for await (const window of readNumbered(redis, (n) => keys.settled(run.id, n), run.blocks, windowSize)) {
    for (const { n, bytes } of window) {
      yield rowsOfBlock(run, decodeBlock(n, present(run, `block ${n} of settled rows`, bytes)).rows);
    }
  }
}

async function readLedgers(redis: RedisClient, run: Run, chunks: Chunk[]): Promise<LedgerChunk[]> {
  if (chunks.length === 0) return [];
  const values = await readValues(
    redis,
    chunks.map(({ n }) => keys.ledger(run.id, n)),
  );
  return chunks.map(({ n, ids }, i) => {
    const bytes = present(run, `ledger chunk ${n}`, values[i]!);
    if (bytes.length === headerBytes + 2 * ids.length) return decodeLedgerChunk(bytes);
    throw new ExpungeError(
      'INTERNAL',
      `run ${run.id}: ledger chunk ${n} has ${bytes.length} bytes for ${ids.length} ids`,
    );
  });
}

/** Excerpts parallel to the ids of the chunk. Only ids that ended badly have one, and most chunks have no such id. */
async function readExcerpts(
  redis: RedisClient,
  run: Run,
  chunk: Chunk,
  ledger: LedgerChunk,
): Promise<(string | null)[]> {
  const excerpts: (string | null)[] = [];
  const bad = [...ledger.cells.keys()].filter((i) => isBad(ledger.cells[i]!));
  if (bad.length === 0) return excerpts;
  const found = await redis.hmget(keys.details(run.id), ...bad.map((i) => `${chunk.n}.${i}`));
  for (const [at, i] of bad.entries()) excerpts[i] = found[at]!;
  return excerpts;
}

function isBad(cell: number): boolean {
  const { outcome } = fateOf(cell);
  return outcome === 'failed' || outcome === 'unknown';
}

function present(run: Run, what: string, bytes: Buffer | null): Buffer {
  if (bytes === null) throw new ExpungeError('INTERNAL', `run ${run.id}: ${what} is missing in Redis`);
  return bytes;
}
