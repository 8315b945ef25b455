/** Nothing may be sent before this time of our clock, and why. */
type Until = { untilMs: number; why: string };

const firstLocalMs = 500;
const longestLocalMs = 4_000;

/**
 * Why a process does not send: the server asked for a wait, or requests fail from this process alone (local backoff). What the server asked for
 * is reported to Redis, and through it to the other processes.
 */
export class Throttles {
  readonly #clock: () => number;
  #asked: Until = { untilMs: 0, why: '' };
  #local: Until = { untilMs: 0, why: '' };
  #localMs = 0; // the last local backoff, 0 = a request was accepted since
  #reported: Until | null = null;
  #isKnown = true; // whether Redis has `asked`

  /** `clock`: monotonic ms. */
  constructor(clock: () => number) {
    this.#clock = clock;
  }

  /** For how many ms nothing may be sent; 0 = requests may be sent. */
  get leftMs(): number {
    return Math.max(0, Math.max(this.#asked.untilMs, this.#local.untilMs) - this.#clock());
  }

  get why(): string {
    return this.#asked.untilMs > this.#local.untilMs ? this.#asked.why : this.#local.why;
  }

  /** The server asks for a wait. False if it changes nothing: answers that were in flight do not extend a wait. */
  request(ms: number, why: string): boolean {
    const untilMs = this.#clock() + ms;
    if (untilMs <= this.#asked.untilMs) return false;
    this.#asked = { untilMs, why };
    this.#isKnown = false;
    return true;
  }

  /**
   * Other processes succeed: this one backs off alone, so that it does not spend their rate. Longer each time, because at first it may be an
   * outage of which the others do not know yet.
   */
  backOffLocally(why: string): void {
    this.#localMs = Math.max(firstLocalMs, Math.min(longestLocalMs, 2 * this.#localMs));
    this.#local = { untilMs: this.#clock() + this.#localMs, why: `${why}, though other processes get through` };
  }

  /** A request is accepted. */
  succeed(): void {
    this.#localMs = 0;
  }

  /** What to report to Redis; 0 ms = nothing. */
  report(): { ms: number; why: string } {
    this.#reported = this.#asked;
    if (this.#isKnown) return { ms: 0, why: '' };
    return { ms: Math.max(0, this.#asked.untilMs - this.#clock()), why: this.#asked.why };
  }

  /** An operator has released everything, also what is not in Redis yet. */
  release(): void {
    this.#asked = { untilMs: 0, why: '' };
    this.#local = { untilMs: 0, why: '' };
    this.#localMs = 0;
    this.#isKnown = true;
  }

  /** Takes over what is valid for all processes, unless the server has asked for something else since the report. */
  receive(untilMs: number, why: string): void {
    this.#isKnown ||= this.#asked === this.#reported;
    if (this.#isKnown || untilMs > this.#asked.untilMs) this.#asked = { untilMs, why };
  }
}
