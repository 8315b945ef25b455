import type { RedisClient } from '../redis/client.ts';
import { readValues } from '../redis/read-values.ts';

/** The value of one of a run's numbered keys; null where Redis has lost it. */
export type Numbered = { n: number; bytes: Buffer | null };

/** The values of the keys 0 … count − 1, `size` of them a round trip and in memory. */
export async function* readNumbered(
  redis: RedisClient,
  keyOf: (n: number) => string,
  count: number,
  size: number,
): AsyncGenerator<Numbered[]> {
  for (let from = 0; from < count; from += size) {
    const numbers = Array.from({ length: Math.min(size, count - from) }, (_, i) => from + i);
    const values = await readValues(redis, numbers.map(keyOf));
    yield numbers.map((n, i) => ({ n, bytes: values[i]! }));
  }
}
