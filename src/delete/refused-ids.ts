/** The refusals of a token for one id. `atMs`: of the last one. `isOwn`: the API refuses the id, not the token. */
type Refusals = { times: number; header: string; atMs: number; isOwn: boolean };

const maxIds = 10_000;

/** Refusals of one id after which it has its outcome. */
export const maxRefusals = 8;

/**
 * The ids for which the API refused a token, with what one process knows of them. A token that no longer works is refused for every id. If an id is
 * refused again although a request that was sent in between got through, the API refuses the id, for example because its object belongs to somebody
 * else. From then on, refusals of the id say nothing about the token. Keeps the last 10,000 ids.
 */
export class RefusedIds {
  readonly #ids = new Map<string, Refusals>();
  readonly #clock: () => number;

  /** `clock`: monotonic ms. */
  constructor(clock: () => number) {
    this.#clock = clock;
  }

  /**
   * Notes a refusal of this header for an id. `workedAtMs`: when the last request with the header that got through was sent. Returns how often a token
   * was refused for the id, or 0 as long as that may be about the token.
   */
  note(id: string, header: string, workedAtMs: number): number {
    const before = this.#ids.get(id);
    const isContradicted = before?.header === header && workedAtMs > before.atMs;
    const isOwn = before?.isOwn === true || isContradicted;
    const times = (before?.times ?? 0) + 1;
    this.#keep(id, { times, header, atMs: this.#clock(), isOwn });
    return isOwn ? times : 0;
  }

  /** Whether it has noted a refusal of the id. */
  knows(id: string): boolean {
    return this.#ids.has(id);
  }

  /** Takes over from another process that the API refuses the id. */
  learn(id: string): void {
    this.#keep(id, { times: maxRefusals / 2, header: '', atMs: 0, isOwn: true });
  }

  #keep(id: string, refusals: Refusals): void {
    this.#ids.delete(id); // so that the oldest come first
    this.#ids.set(id, refusals);
    if (this.#ids.size > maxIds) this.#ids.delete(this.#ids.keys().next().value!);
  }
}
