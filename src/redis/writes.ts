import { refusalWords } from './refusal-words.ts';

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
