/**
 * Whether runs wait for their share of this process: they are running, and no chunk of theirs is in hand. Without that no chunk is
 * looked for beyond those that have enough to do.
 */
export class WaitingRuns {
  readonly #readRunning: () => Promise<string[]>;
  readonly #isAtWork: (run: string) => boolean;
  #running: string[] = [];

  constructor(readRunning: () => Promise<string[]>, isAtWork: (run: string) => boolean) {
    this.#readRunning = readRunning;
    this.#isAtWork = isAtWork;
  }

  get isOne(): boolean {
    return this.#running.some((run) => !this.#isAtWork(run));
  }

  /** Asks which runs there are; without an answer it goes by the last one. */
  async look(): Promise<void> {
    this.#running = await this.#readRunning().catch(() => this.#running);
  }
}
