/** Nothing may leave before this moment of our own clock, and why. */
type Until = { untilMs: number; why: string };

/**
 * What keeps a process from sending: the server asked everybody to wait, or requests fail from this process alone.
 * What the server asked for is reported to Redis, and through it to the other processes.
 */
export class Throttles {
  readonly #clock: () => number;
  #asked: Until = { untilMs: 0, why: '' };
  #local: Until = { untilMs: 0, why: '' };
  #telling: Until | null = null;
  #isKnown = true; // to Redis

  /** `clock`: monotonic ms. */
  constructor(clock: () => number) {
    this.#clock = clock;
  }

  /** How long nothing may leave, in ms; 0 = it may. */
  get leftMs(): number {
    return Math.max(0, Math.max(this.#asked.untilMs, this.#local.untilMs) - this.#clock());
  }

  get why(): string {
    return this.#asked.untilMs > this.#local.untilMs ? this.#asked.why : this.#local.why;
  }

  /** The server asks to wait. False if that is no news: answers that were on their way don't add to it. */
  request(ms: number, why: string): boolean {
    const untilMs = this.#clock() + ms;
    if (untilMs <= this.#asked.untilMs) return false;
    this.#asked = { untilMs, why };
    this.#isKnown = false;
    return true;
  }

  /** Other processes succeed: this one backs off alone, so that it does not spend their rate. */
  backOffLocally(ms: number, why: string): void {
    this.#local = { untilMs: this.#clock() + ms, why: `${why}, though other processes get through` };
  }

  /** What Redis is to be told; 0 ms = nothing. */
  report(): { ms: number; why: string } {
    this.#telling = this.#asked;
    if (this.#isKnown) return { ms: 0, why: '' };
    return { ms: Math.max(0, this.#asked.untilMs - this.#clock()), why: this.#asked.why };
  }

  /** An operator has lifted it all, also what Redis was not told yet. */
  release(): void {
    this.#asked = { untilMs: 0, why: '' };
    this.#local = { untilMs: 0, why: '' };
    this.#isKnown = true;
  }

  /** Redis was told, and says what holds for everybody. Its word counts unless there is news since. */
  receive(untilMs: number, why: string): void {
    this.#isKnown ||= this.#asked === this.#telling;
    if (this.#isKnown || untilMs > this.#asked.untilMs) this.#asked = { untilMs, why };
  }
}
