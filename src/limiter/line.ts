import type { Permits } from './permits.ts';

/** What a line needs from around it. */
export type LineOptions<T> = {
  /** Of this line alone, in force at the moment; null = it needs none. */
  permits(): Permits | null;
  /** How many may go in one turn of the line, at the moment; 1 if it is missing. */
  weight?(): number;
  /** Asked of the head before it goes. False: it leaves the line for good, and has been told. */
  stillWants(waiting: T): boolean;
};

/** Those who wait to leave by one rate, in order; see `Turns` for when they go. */
export class Line<T> {
  readonly #options: LineOptions<T>;
  readonly #line: T[] = [];
  #head = 0; // the line is read from here: shifting a long array costs its length

  constructor(options: LineOptions<T>) {
    this.#options = options;
  }

  get length(): number {
    return this.#line.length - this.#head;
  }

  get weight(): number {
    return this.#options.weight?.() ?? 1;
  }

  join(waiting: T): void {
    this.#line.push(waiting);
  }

  /** When the head may go as far as this line is concerned; infinite if that is unknown or nobody waits. */
  dueMs(nowMs: number): number {
    if (this.length === 0) return Number.POSITIVE_INFINITY;
    return this.#options.permits()?.nextMs(nowMs) ?? nowMs;
  }

  /** Whether the head may go now. Heads that no longer want to leave the line. */
  isDue(nowMs: number): boolean {
    while (this.length > 0) {
      if (this.#options.stillWants(this.#line[this.#head]!)) return this.dueMs(nowMs) <= nowMs;
      this.#shift();
    }
    return false;
  }

  /** The head goes and uses its permit; `isDue` has just said that it may. */
  take(nowMs: number): T {
    this.#options.permits()?.take(nowMs);
    return this.#shift();
  }

  /** Lets everybody leave who no longer wants to go. */
  review(): void {
    const line = this.#line.splice(0).slice(this.#head);
    this.#head = 0;
    for (const waiting of line) if (this.#options.stillWants(waiting)) this.#line.push(waiting);
  }

  #shift(): T {
    const first = this.#line[this.#head++]!;
    if (this.#head === this.#line.length) {
      this.#line.length = 0;
      this.#head = 0;
    }
    return first;
  }
}
