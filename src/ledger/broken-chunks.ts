import type { RedisClient } from '../redis/client.ts';
import { keys } from '../redis/keys.ts';
import { readValues } from '../redis/read-values.ts';
import { headerBytes } from './cells.ts';
import { decodeChunk } from './manifest.ts';
import { readNumbered } from './read-numbered.ts';
import type { Run } from './run.ts';

const brokenWindowSize = 16;
const namesMax = 10;

/** Names chunks and blocks that Redis has lost or cut, at most ten. Empty if every one of them is whole. */
export async function findBrokenChunks(redis: RedisClient, run: Run): Promise<string[]> {
  const names: string[] = [];
  for await (const name of brokenNames(redis, run)) {
    names.push(name);
    if (names.length === namesMax) break;
  }
  return names;
}

async function* brokenNames(redis: RedisClient, run: Run): AsyncGenerator<string> {
  for await (const chunks of readNumbered(redis, (n) => keys.manifest(run.id, n), run.chunks, brokenWindowSize)) {
    const cells = await readValues(
      redis,
      chunks.map(({ n }) => keys.ledger(run.id, n)),
    );
    for (const [i, { n, bytes }] of chunks.entries()) yield* compare(n, bytes, cells[i]!);
  }
  for await (const blocks of readNumbered(redis, (n) => keys.settled(run.id, n), run.blocks, brokenWindowSize)) {
    for (const { n, bytes } of blocks) if (bytes === null) yield `block ${n} of settled rows is missing`;
  }
}

function* compare(n: number, manifest: Buffer | null, ledger: Buffer | null): Generator<string> {
  if (manifest === null) yield `manifest chunk ${n} is missing`;
  if (ledger === null) yield `ledger chunk ${n} is missing`;
  if (manifest === null || ledger === null) return;
  const ids = decodeChunk(n, manifest).ids.length;
  const expected = headerBytes + 2 * ids;
  if (ledger.length !== expected) {
    yield `ledger chunk ${n} has ${ledger.length} bytes instead of ${expected} for its ${ids} ids`;
  }
}
