import type { RedisClient } from './client.ts';
import { refusalWords } from './errors.ts';
import { keys } from './keys.ts';

/** What a process knows about whether Redis takes what it writes. */
export type Writes = {
  /** Why Redis answers and doesn't; '' = it does, as far as anybody has noticed. */
  readonly refused: string;
  /** A write that failed; true if Redis refused it, which `onChange` tells of. */
  failed(error: unknown): boolean;
  /** A write that Redis took. */
  took(): void;
};

const settledMs = 1_000;

/**
 * Follows what became of writes. In a cluster one node may refuse while another one takes, so a success counts once nothing was refused
 * for a second. `onChange` is called when Redis begins to refuse, when the reason is another one, and when it takes writes again.
 */
export function followWrites(clock: () => number, onChange: (refused: string) => void): Writes {
  let refused = '';
  let refusedAt = 0;
  const change = (words: string) => {
    if (words === refused) return;
    refused = words;
    onChange(words);
  };
  return {
    get refused() {
      return refused;
    },
    failed: (error) => {
      const words = refusalWords(error);
      if (words === '') return false; // no answer is no refusal
      refusedAt = clock();
      change(words);
      return true;
    },
    took: () => {
      if (clock() - refusedAt >= settledMs) change('');
    },
  };
}

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
