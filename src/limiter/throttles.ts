/** The time by our clock before which sending is not allowed, and why. */
type Until = { untilMs: number; why: string };

const firstLocalMs = 500;
const maxLocalMs = 4_000;

/**
 * Why a process does not send: the server asked for a wait, or requests fail from this process alone (local backoff). The server's wait is reported
 * to Redis, and through it to the other processes.
 */
export class Throttles {
  readonly #clock: () => number;
  #asked: Until = { untilMs: 0, why: '' };
  #local: Until = { untilMs: 0, why: '' };
  #localMs = 0; // the last local backoff; 0 = a request was accepted since
  #reported: Until | null = null;
  #isKnown = true; // whether Redis has `asked`

  /** `clock`: monotonic ms. */
  constructor(clock: () => number) {
    this.#clock = clock;
  }

  /** The time for which sending is not allowed, in ms; 0 = requests may be sent. */
  get leftMs(): number {
    const untilMs = Math.max(this.#asked.untilMs, this.#local.untilMs);
    return untilMs === 0 ? 0 : Math.max(0, untilMs - this.#clock()); // asked for each request, and nearly always there was none
  }

  get why(): string {
    return this.#asked.untilMs > this.#local.untilMs ? this.#asked.why : this.#local.why;
  }

  /** Starts a wait that the server asks for. Returns false if it changes nothing: answers that were in flight do not extend a wait. */
  request(ms: number, why: string): boolean {
    const untilMs = this.#clock() + ms;
    if (untilMs <= this.#asked.untilMs) return false;
    this.#asked = { untilMs, why };
    this.#isKnown = false;
    return true;
  }

  /**
   * Backs off alone, because other processes succeed, so that this process does not spend their rate. Longer each time, because at first it may be an
   * outage that the others have not noticed yet.
   */
  backOffLocally(why: string): void {
    this.#localMs = Math.max(firstLocalMs, Math.min(maxLocalMs, 2 * this.#localMs));
    this.#local = { untilMs: this.#clock() + this.#localMs, why: `${why}, though other processes get through` };
  }

  /** Notes that a request was accepted. */
  succeed(): void {
    this.#localMs = 0;
  }

  /** The report to Redis; 0 ms = nothing. */
  report(): { ms: number; why: string } {
    this.#reported = this.#asked;
    if (this.#isKnown) return { ms: 0, why: '' };
    return { ms: Math.max(0, this.#asked.untilMs - this.#clock()), why: this.#asked.why };
  }

  /** Ends all waits after a release by an operator, including a wait that is not in Redis yet. */
  release(): void {
    this.#asked = { untilMs: 0, why: '' };
    this.#local = { untilMs: 0, why: '' };
    this.#localMs = 0;
    this.#isKnown = true;
  }

  /** Takes over the wait for all processes, unless the server has asked for another one since the report. */
  receive(untilMs: number, why: string): void {
    this.#isKnown ||= this.#asked === this.#reported;
    if (this.#isKnown || untilMs > this.#asked.untilMs) this.#asked = { untilMs, why };
  }
}
