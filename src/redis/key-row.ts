/** A key with its description on the page of Redis keys, which `npm run docs` writes. */
export type KeyRow = {
  /** The key itself, or the function that makes it from its run or its target's fingerprint, and further parts. */
  key: string | ((...parts: never[]) => string);
  type: 'string' | 'hash' | 'list' | 'set' | 'zset';
  contents: string;
  /** The files that write it, relative to `src/`, or words for many of them. */
  writers: readonly string[];
  /** When it expires; `runEnd` for the keys that a run keeps as long as its record. */
  expires: string;
};

/** The expiry of what a run stores: `--keep` after it is finalized. */
export const runEnd = "run's end";
