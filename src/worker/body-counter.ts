import { randomUUID } from 'node:crypto';

type Count = { readonly counter: string; answers: number; stored: number };

const maxRuns = 100;

/**
 * Counts, for each run, the answers to this process that were a 204 with a body. No other answer costs anything here. Beyond 100 runs it forgets the
 * oldest run that is stored. If that run continues, it gets a counter with a new name.
 */
export class BodyCounter {
  readonly #store: (run: string, counter: string, answers: number) => Promise<void>;
  readonly #counts = new Map<string, Count>();

  /** `store` may be repeated; see `storeBodies`. */
  constructor(store: (run: string, counter: string, answers: number) => Promise<void>) {
    this.#store = store;
  }

  note(run: string): void {
    const known = this.#counts.get(run) ?? { counter: randomUUID(), answers: 0, stored: 0 };
    known.answers++;
    this.#counts.set(run, known);
  }

  /** Stores new counts. Throws what `store` throws; in that case, the next call stores them. */
  async flush(): Promise<void> {
    for (const [run, count] of this.#counts) {
      const { counter, answers } = count;
      if (answers > count.stored) {
        await this.#store(run, counter, answers);
        count.stored = answers;
      }
      if (this.#counts.size > maxRuns && count.answers === count.stored) this.#counts.delete(run);
    }
  }
}
