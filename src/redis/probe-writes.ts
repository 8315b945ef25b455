import type { RedisClient } from './client.ts';
import { keys } from './keys.ts';
import { refusalWords } from './refusal-words.ts';

/**
 * Tries whether Redis takes a write beside the keys of this tag, a run or a target. Returns why it refuses, or ''.
 * Leaves a key that is gone after a second. Throws where Redis doesn't answer.
 */
export async function refusalOfWrites(redis: RedisClient, tag: string): Promise<string> {
  try {
    await redis.set(keys.probe(tag), '', 'PX', 1_000);
    return '';
  } catch (error) {
    const words = refusalWords(error);
    if (words === '') throw error;
    return words;
  }
}
