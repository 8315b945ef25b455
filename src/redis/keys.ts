import type { KeyRow } from './key-row.ts';
import { runKeys } from './run-keys.ts';
import { scheduleKeys } from './schedule-keys.ts';
import { sharedKeys } from './shared-keys.ts';
import { targetKeys } from './target-keys.ts';

/**
 * Every Redis key of expunge; its row describes the contents. All keys of a run have the hash tag {run}, all keys of a target the tag {fp}, and no
 * script uses both. So everything works on Redis Cluster.
 */
export const keys = {
  ...keysOf(runKeys),
  ...keysOf(targetKeys),
  ...keysOf(scheduleKeys),
  ...keysOf(sharedKeys),
  /** The prefix of the queues of a target. */
  queuePrefix: (fp: string) => `expunge:{${fp}}`,
} as const;

function keysOf<T extends Record<string, KeyRow>>(rows: T): { readonly [N in keyof T]: T[N]['key'] } {
  return Object.fromEntries(Object.entries(rows).map(([name, { key }]) => [name, key])) as {
    [N in keyof T]: T[N]['key'];
  };
}
