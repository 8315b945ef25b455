/**
 * Whether runs wait for their share of this process: they are running, no chunk of theirs is in hand, and their own rate is not what they
 * wait for (`isServed`). Without that no chunk is looked for beyond those that have enough to do.
 */
export class WaitingRuns {
  readonly #readRunning: () => Promise<string[]>;
  readonly #hasWork: () => boolean;
  readonly #isServed: (run: string) => boolean;
  #running: string[] = [];

  constructor(readRunning: () => Promise<string[]>, hasWork: () => boolean, isServed: (run: string) => boolean) {
    this.#readRunning = readRunning;
    this.#hasWork = hasWork;
    this.#isServed = isServed;
  }

  get isOne(): boolean {
    return this.#running.some((run) => !this.#isServed(run));
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
