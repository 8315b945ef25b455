import { decodeLedgerChunk, readCell } from '../ledger/cell.ts';
import { decodeChunk } from '../ledger/manifest.ts';
import { decodeLedger, present } from '../ledger/outcome-rows.ts';
import type { Run } from '../ledger/run.ts';
import { readNumbered } from '../ledger/tally.ts';
import type { Resource } from '../model/resource.ts';
import type { Position } from '../model/row.ts';
import { type RedisClient, readValues } from '../redis/client.ts';
import { keys } from '../redis/keys.ts';

/** An id that the API confirmed as deleted, and its position in the list. */
export type DeletedId = Position & { resource: Resource; id: string };

const keysPerRead = 16; // chunks in memory

/**
 * Chooses `size` of the `deleted` ids of a run, each with the same probability and none twice, in the order of the ledger; all if there are no more.
 * Reads each cell once and decodes the ids of the chosen chunks only. `random` is from 0 up to 1. Throws INTERNAL for a chunk that Redis has lost.
 */
export async function sampleDeleted(
  redis: RedisClient,
  run: Run,
  { size, random }: { size: number; random: () => number },
): Promise<DeletedId[]> {
  const wanted = chooseOrdinals(run.counts.deleted, size, random);
  const sample: DeletedId[] = [];
  let seen = 0; // deleted ids in the earlier chunks
  let next = 0; // index into `wanted`
  for await (const part of readNumbered(redis, (n) => keys.ledger(run.id, n), run.chunks, keysPerRead)) {
    for (const { n, bytes } of part) {
      const deleted = deletedIn(present(run, `ledger chunk ${n}`, bytes));
      const chosen: number[] = [];
      while (next < wanted.length && wanted[next]! < seen + deleted.length)
        chosen.push(deleted[wanted[next++]! - seen]!);
      seen += deleted.length;
      if (chosen.length > 0) sample.push(...(await readIds(redis, run, { n, bytes: bytes! }, chosen)));
    }
    if (next === wanted.length) break;
  }
  return sample;
}

/**
 * Chooses `size` different numbers from 0 up to `of`, ascending, each as likely as any other (Floyd's algorithm); all if there are no more. Pure but
 * for `random`.
 */
export function chooseOrdinals(of: number, size: number, random: () => number): number[] {
  const chosen = new Set<number>();
  for (let last = Math.max(0, of - size); last < of; last++) {
    const drawn = Math.floor(random() * (last + 1));
    chosen.add(chosen.has(drawn) ? last : drawn);
  }
  return [...chosen].sort((a, b) => a - b);
}

function deletedIn(bytes: Buffer): number[] {
  const { cells } = decodeLedgerChunk(bytes);
  return [...cells.keys()].filter((index) => readCell(cells[index]!).outcome === 'deleted');
}

async function readIds(
  redis: RedisClient,
  run: Run,
  { n, bytes }: { n: number; bytes: Buffer },
  indexes: readonly number[],
): Promise<DeletedId[]> {
  const [manifest] = await readValues(redis, [keys.manifest(run.id, n)]);
  const chunk = decodeChunk(n, present(run, `manifest chunk ${n}`, manifest!));
  decodeLedger(run, chunk, bytes); // throws if the chunk is cut
  return indexes.map((i) => ({ ...chunk.positions[i]!, resource: chunk.resource, id: chunk.ids[i]! }));
}
