import { createHash } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import { ExpungeError } from '../errors.ts';
import { visible } from '../model/visible.ts';
import { type RedisClient, readValues } from '../redis/client.ts';
import { keys } from '../redis/keys.ts';
import { decodeLedgerChunk, isSettled } from './cell.ts';
import { decodeChunk } from './manifest.ts';
import type { Run } from './run.ts';

// A worker announces which ids its settings protect: the first eight bytes of the SHA-256 of each id, sorted. That is small enough for each action to
// read, and long enough that no two ids in a million lists share them.

const announcedMs = 86_400_000;
const digestBytes = 8;

/** Records which ids a worker of a target protects now. The record is kept for a day, so that workers can be replaced in that time. */
export async function announceProtection(
  redis: RedisClient,
  fp: string,
  protectedIds: AsyncIterable<readonly string[]>,
): Promise<void> {
  const digests: string[] = [];
  for await (const ids of protectedIds) for (const id of ids) digests.push(digestOf(id));
  const value = Buffer.from(digests.sort().join(''), 'hex');
  await redis.set(keys.protection(fp), value, 'PX', announcedMs);
}

/** Records that a worker of a target protects ids without knowing which. An earlier announcement stays. */
export async function announceUnreadProtection(redis: RedisClient, fp: string): Promise<void> {
  await redis.set(keys.protection(fp), '', 'PX', announcedMs, 'NX');
}

/** A list that is left to workers. `isProtected`: its reader named protected ids; `ids`: the ids that would be sent. */
export type LeftToWorkers = {
  isProtected: boolean;
  ids: AsyncIterable<readonly string[]> | Iterable<readonly string[]>;
};

/**
 * Throws GUARD for a list that is left to workers if a worker names protected ids, and the list was read without any, or holds one of them. Protected
 * ids are meant for everything that a worker deletes, but only the reader of a list can keep ids out of it. An action may protect more ids than the
 * workers, not fewer.
 */
export async function refuseUnprotected(
  redis: RedisClient,
  fp: string,
  { isProtected, ids }: LeftToWorkers,
): Promise<void> {
  const announced = await redis.getBuffer(keys.protection(fp));
  if (announced === null) return;
  const next = 'read it where the file is: with --protect FILE, or at a worker of this target with --http';
  if (!isProtected) {
    const message = 'the list protects no ids, but the settings of a worker of its target do; nothing was sent';
    throw new ExpungeError('GUARD', message, { next });
  }
  const digests = digestsIn(announced);
  for await (const part of ids) {
    const found = part.find((id) => digests.has(digestOf(id)));
    if (found !== undefined) {
      const message = `${visible(found)} would be deleted, but the settings of a worker of its target protect it; nothing was sent`;
      throw new ExpungeError('GUARD', message, { next });
    }
    await setImmediate();
  }
}

/** The ids of a run that are still to be sent, according to the ledger. */
export async function* readOpenIds(redis: RedisClient, { id, chunks }: Run): AsyncGenerator<string[]> {
  for (let n = 0; n < chunks; n++) {
    const [manifest, ledger] = await readValues(redis, [keys.manifest(id, n), keys.ledger(id, n)]);
    if (!manifest || !ledger) continue; // lost chunks are never sent: their claim reports the loss
    const { cells } = decodeLedgerChunk(ledger);
    yield decodeChunk(n, manifest).ids.filter((_, i) => !isSettled(cells[i]!));
  }
}

function digestOf(id: string): string {
  return createHash('sha256')
    .update(id)
    .digest('hex')
    .slice(0, 2 * digestBytes);
}

function digestsIn(announced: Buffer): Set<string> {
  const digests = new Set<string>();
  for (let at = 0; at + digestBytes <= announced.length; at += digestBytes)
    digests.add(announced.toString('hex', at, at + digestBytes));
  return digests;
}
