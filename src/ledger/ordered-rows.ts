import { resources } from '../model/outcome.ts';
import type { RedisClient } from '../redis/client.ts';
import { mergePages } from './merge-pages.ts';
import type { OutcomeRow } from './outcome-row.ts';
import { readBlockPages, readChunkPages } from './outcome-rows.ts';
import type { Run } from './run.ts';

/**
 * All rows of a run in input order: by file as it was named, then by line. Holds a few chunks in memory, whatever the size
 * of the run. Throws INTERNAL for a chunk that Redis has lost. A live run moves on while it is read: each row is as it was
 * when its chunk was read.
 */
export function readOutcomes(redis: RedisClient, run: Run): AsyncGenerator<OutcomeRow[]> {
  const chunks = resources.map((resource) => readChunkPages(redis, run, resource));
  return mergePages([...chunks, readBlockPages(redis, run)]);
}
