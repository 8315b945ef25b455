import type { RedisClient } from './client.ts';
import { describeRejection } from './errors.ts';
import { keys } from './keys.ts';

/** Whether Redis accepts the writes of a process. */
export type WriteStatus = {
  /** Why Redis rejects them; '' = as far as is known, it accepts them. */
  readonly rejection: string;
  /** Reports a failed write. Returns true if Redis rejected it; false if it did not answer. */
  failed(error: unknown): boolean;
  /** Reports a successful write. */
  succeeded(): void;
};

const settledMs = 1_000;

/**
 * Tracks rejected writes. In a cluster one node may reject writes while another accepts them, so a success counts only if no write was rejected for a
 * second. `onChange` is called when Redis begins to reject writes, when the reason changes, and when it accepts them again (''). `clock`: monotonic
 * ms.
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
      if (words === '') return false; // a missing answer is not a rejection
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
 * Tests whether Redis accepts a write to the slot of this tag, a run or a target. Returns why it rejects the write, or ''. The key that it writes
 * expires after a second. Throws if Redis doesn't answer.
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

/**
 * The same for people who ask why nothing is sent. A login that is only allowed to read says nothing about the processes that write, so its own
 * rejection counts as ''.
 */
export async function probeWritesOfOthers(redis: RedisClient, tag: string): Promise<string> {
  const words = await probeWrites(redis, tag);
  return words.includes('NOPERM') ? '' : words;
}
