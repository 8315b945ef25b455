/**
 * Whether runs wait for their share of this process: they are running, and no chunk of theirs is in hand. Without that no chunk is
 * looked for beyond those that have enough to do.
 */
export class WaitingRuns {
  readonly #readRunning: () => Promise<string[]>;
  readonly #hasWork: () => boolean;
  readonly #isAtWork: (run: string) => boolean;
  #running: string[] = [];

  constructor(readRunning: () => Promise<string[]>, hasWork: () => boolean, isAtWork: (run: string) => boolean) {
    this.#readRunning = readRunning;
    this.#hasWork = hasWork;
    this.#isAtWork = isAtWork;
  }

  get isOne(): boolean {
    return this.#running.some((run) => !this.#isAtWork(run));
  }

  /**
   * Asks which runs there are; without an answer it goes by the last one. A process that has nothing in hand takes what comes, and need not
   * know.
   */
  async look(): Promise<void> {
    if (!this.#hasWork()) return;
    this.#running = await this.#readRunning().catch(() => this.#running);
  }
}
