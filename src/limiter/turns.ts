import type { Permits } from './permits.ts';

/** What the turns need from around them. */
export type TurnsOptions<T> = {
  /** Of all lines together. */
  permits: Permits;
  /** Whether there is room behind the lines. */
  hasRoom(): boolean;
  /** The turn of somebody has come, and permits were used for it. */
  go(waiting: T): void;
  /** Monotonic ms. */
  clock(): number;
};

/**
 * Lines whose heads go one after another, in turn, each when a permit of its own line and one of all lines are due and there is room.
 * Of a line with a weight so many go in its turn, so that busy lines share what leaves by their weights.
 * Both permits are used in the moment of leaving: whoever waited for one can't go faster by the other afterwards. Call `pump` whenever
 * there may be room or permits again; for permits that become due later it wakes up by itself.
 */
export class Turns<T> {
  readonly #options: TurnsOptions<T>;
  readonly #lines = new Map<Line<T>, number>(); // those in which somebody waits, and how many may go in this turn; next comes first
  #timer: NodeJS.Timeout | null = null;
  #wakesAt = Number.POSITIVE_INFINITY;
  #starved = false;

  constructor(options: TurnsOptions<T>) {
    this.#options = options;
  }

  /** How many wait in all lines. */
  get length(): number {
    let sum = 0;
    for (const line of this.#lines.keys()) sum += line.length;
    return sum;
  }

  join(line: Line<T>, waiting: T): void {
    line.join(waiting);
    if (!this.#lines.has(line)) this.#lines.set(line, line.weight);
    this.pump();
  }

  /** Lets go whoever may. */
  pump(): void {
    const { permits, hasRoom, go, clock } = this.#options;
    while (this.#lines.size > 0 && hasRoom()) {
      const now = clock();
      const line = this.#next(now);
      if (line === null || !permits.take(now)) break;
      const first = line.take(now);
      this.#count(line);
      go(first);
    }
    if (this.#lines.size > 0) this.#wait();
  }

  /** Lets everybody leave who no longer wants to go. */
  review(): void {
    for (const line of this.#lines.keys()) {
      line.review();
      if (line.length === 0) this.#lines.delete(line);
    }
  }

  /** Whether, since this was asked last, somebody might have gone but for room. */
  takeStarved(): boolean {
    const starved = this.#starved;
    this.#starved = false;
    return starved;
  }

  close(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
  }

  /** One of the line has gone: at the end of its turn it stands behind the others. */
  #count(line: Line<T>): void {
    const left = this.#lines.get(line)! - 1;
    if (line.length > 0 && left > 0) return void this.#lines.set(line, left);
    this.#lines.delete(line);
    if (line.length > 0) this.#lines.set(line, line.weight);
  }

  #next(now: number): Line<T> | null {
    for (const line of this.#lines.keys()) {
      if (line.isDue(now)) return line;
      if (line.length === 0) this.#lines.delete(line);
    }
    return null;
  }

  /** Somebody still waits: for room, and then whoever makes room pumps, or for a permit that is due later. */
  #wait(): void {
    const { permits, hasRoom, clock } = this.#options;
    const isFull = !hasRoom();
    if (isFull && this.#starved) return; // nothing new to note, and a busy process comes here for every request
    const now = clock();
    let soonest = Number.POSITIVE_INFINITY;
    for (const line of this.#lines.keys()) soonest = Math.min(soonest, line.dueMs(now));
    const next = Math.max(soonest, permits.nextMs(now));
    if (isFull) {
      if (next <= now) this.#starved = true;
      return;
    }
    if (next >= this.#wakesAt || next === Number.POSITIVE_INFINITY) return;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#wakesAt = next;
    this.#timer = setTimeout(
      () => {
        this.#timer = null;
        this.#wakesAt = Number.POSITIVE_INFINITY;
        this.pump();
      },
      Math.max(1, next - now),
    );
  }
}

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
