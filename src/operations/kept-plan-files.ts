import { createReadStream, createWriteStream } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline as pipe, Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createZstdCompress, createZstdDecompress } from 'node:zlib';
import { ExpungeError } from '../errors.ts';
import { withSpoolFolder } from '../input/with-list.ts';
import { type KeptPlan, type PlanFile, readPlanFileParts, writePlanFileParts } from '../ledger/kept-plans.ts';
import type { RedisClient } from '../redis/client.ts';
import { systemCode } from '../system-errors.ts';

// Moves the files of a kept plan between this machine and Redis, which has them packed.

const partBytes = 512 * 1_024;

/** Writes a file of this machine to Redis, and returns the number of bytes there. Throws USAGE for too many. */
export function keepFile(redis: RedisClient, id: string, name: PlanFile, path: string): Promise<number> {
  return keepStream(redis, id, name, createReadStream(path));
}

/** Does the same for a text. */
export function keepText(redis: RedisClient, id: string, name: PlanFile, text: string): Promise<number> {
  return keepStream(redis, id, name, Readable.from([Buffer.from(text)]));
}

function keepStream(redis: RedisClient, id: string, name: PlanFile, content: Readable): Promise<number> {
  return pipeline(content, createZstdCompress(), (packed: AsyncIterable<Buffer>) =>
    writePlanFileParts(redis, id, name, inParts(packed)),
  );
}

async function* inParts(stream: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let held: Buffer[] = [];
  let bytes = 0;
  for await (const block of stream) {
    held.push(block);
    bytes += block.length;
    if (bytes < partBytes) continue;
    yield Buffer.concat(held);
    [held, bytes] = [[], 0];
  }
  if (bytes > 0) yield Buffer.concat(held);
}

/** A file of a plan as it comes from Redis; it ends with an error if it is damaged or gone. */
export function readKept(redis: RedisClient, id: string, name: PlanFile): Readable {
  return pipe(Readable.from(readPlanFileParts(redis, id, name)), createZstdDecompress(), () => {});
}

/** The text of a file of a plan. Throws GUARD if it is damaged or gone. */
export async function readKeptText(redis: RedisClient, id: string, name: PlanFile): Promise<string> {
  const blocks: Buffer[] = [];
  try {
    for await (const block of readKept(redis, id, name)) blocks.push(block);
  } catch (error) {
    throw explained(id, error);
  }
  return Buffer.concat(blocks).toString();
}

/** The list of a plan in a folder of this machine. */
export type PlanFiles = { folder: string; list: string };

/** Calls `body` with the list of a plan, and removes it. Throws GUARD if it is damaged or gone. */
export function withPlanFiles<T>(
  redis: RedisClient,
  stateDir: string,
  { id, name }: Pick<KeptPlan, 'id' | 'name'>,
  body: (files: PlanFiles) => Promise<T>,
): Promise<T> {
  return withSpoolFolder(stateDir, async (folder) => {
    const list = join(folder, 'list', name);
    await mkdir(join(folder, 'list'), { mode: 0o700 });
    await pipeline(readKept(redis, id, 'list'), createWriteStream(list, { mode: 0o600 })).catch((error) => {
      throw explained(id, error);
    });
    return body({ folder, list });
  });
}

/** The error of unpacking in words; any other error unchanged. */
function explained(id: string, error: unknown): unknown {
  if (!/^(ZSTD|Z)_/.test(systemCode(error))) return error;
  return new ExpungeError('GUARD', `the files of plan ${id} are damaged in Redis, or gone; nothing was sent`, {
    cause: error,
    next: 'make a new plan',
  });
}
