import type { RedisClient } from './client.ts';
import { describeRejection } from './errors.ts';
import { keys } from './keys.ts';

/** What a process knows about whether Redis takes what it writes. */
export type WriteStatus = {
  /** Why Redis answers and doesn't; '' = it does, as far as anybody has noticed. */
  readonly rejection: string;
  /** A write that failed; true if Redis refused it, which `onChange` tells of. */
  failed(error: unknown): boolean;
  /** A write that Redis took. */
  succeeded(): void;
};

const settledMs = 1_000;

/**
 * Follows what became of writes. In a cluster one node may refuse while another one takes, so a success counts once nothing was refused
 * for a second. `onChange` is called when Redis begins to refuse, when the reason is another one, and when it takes writes again.
 */
export function trackWrites(clock: () => number, onChange: (rejection: string) => void): WriteStatus {
  let rejection = '';
  let rejectedAt = 0;
  const change = (words: string) => {
    if (words === rejection) return;
    rejection = words;
    onChange(words);
  };
  return {
    get rejection() {
      return rejection;
    },
    failed: (error) => {
      const words = describeRejection(error);
      if (words === '') return false; // no answer is no refusal
      rejectedAt = clock();
      change(words);
      return true;
    },
    succeeded: () => {
      if (clock() - rejectedAt >= settledMs) change('');
    },
  };
}

/**
 * Tries whether Redis takes a write beside the keys of this tag, a run or a target. Returns why it refuses, or ''.
 * Leaves a key that is gone after a second. Throws where Redis doesn't answer.
 */
export async function probeWrites(redis: RedisClient, tag: string): Promise<string> {
  try {
    await redis.set(keys.probe(tag), '', 'PX', 1_000);
    return '';
  } catch (error) {
    const words = describeRejection(error);
    if (words === '') throw error;
    return words;
  }
}
