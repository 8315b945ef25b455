import type { Permits } from './permits.ts';

/** The dependencies of the scheduler. */
type FairSchedulerOptions<T> = {
  /** Permits of all queues together. */
  permits: Permits;
  /** Whether there is a free connection. */
  hasRoom(): boolean;
  /** Sends the head of a queue, whose permits are taken. */
  send(waiting: T, nowMs: number, queue: RunQueue<T>): void;
  /** Monotonic ms. */
  clock(): number;
};

/**
 * Round robin over queues, so that busy queues share the rate alike. A head is sent when a permit of its own queue and a permit of all queues are due
 * and a connection is free. Both permits are used when the head is sent: waiting for one saves no permits of the other. Call `pump` whenever there may
 * be room or permits again. For permits that become due later, it wakes up by itself.
 */
export class FairScheduler<T> {
  readonly #options: FairSchedulerOptions<T>;
  readonly #queues: RunQueue<T>[] = []; // those that are not empty, the next in turn first
  #timer: NodeJS.Timeout | null = null;
  #wakesAt = Number.POSITIVE_INFINITY;
  #starved = false;

  constructor(options: FairSchedulerOptions<T>) {
    this.#options = options;
  }

  /** The number of waiting requests, over all queues. */
  get length(): number {
    let sum = 0;
    for (const queue of this.#queues) sum += queue.length;
    return sum;
  }

  add(queue: RunQueue<T>, waiting: T): void {
    queue.add(waiting);
    if (!this.#queues.includes(queue)) this.#queues.push(queue);
    this.pump();
  }

  /** Sends all requests that may be sent. */
  pump(): void {
    const { permits, hasRoom, send, clock } = this.#options;
    while (this.#queues.length > 0 && hasRoom()) {
      const now = clock();
      const queue = this.#next(now);
      if (queue === null || !permits.take(now)) break;
      const first = queue.take(now);
      this.#endTurn(queue);
      send(first, now, queue);
    }
    if (this.#queues.length > 0) this.#wait();
  }

  /** Drops requests that may no longer be sent. */
  revalidate(): void {
    const now = this.#options.clock();
    for (const queue of this.#queues) queue.revalidate(now);
    this.#dropEmpty();
  }

  /** Whether a permit was due and no connection was free since the last call. */
  takeStarved(): boolean {
    const starved = this.#starved;
    this.#starved = false;
    return starved;
  }

  close(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
  }

  /** Moves the queue behind the others, or drops it if it is empty. */
  #endTurn(queue: RunQueue<T>): void {
    if (this.#queues.length === 1 && queue.length > 0) return; // the usual case: one run
    this.#queues.splice(this.#queues.indexOf(queue), 1);
    if (queue.length > 0) this.#queues.push(queue);
  }

  #next(now: number): RunQueue<T> | null {
    const first = this.#queues[0]!;
    if (first.isDue(now)) return first;
    const due = this.#queues.find((queue) => queue !== first && queue.isDue(now));
    this.#dropEmpty();
    return due ?? null;
  }

  #dropEmpty(): void {
    for (let i = this.#queues.length - 1; i >= 0; i--) if (this.#queues[i]!.length === 0) this.#queues.splice(i, 1);
  }

  /** Waits, for room, in which case the next `pump` continues, or for a permit that is due later. */
  #wait(): void {
    const { permits, hasRoom, clock } = this.#options;
    const isFull = !hasRoom();
    if (isFull && this.#starved) return; // no change, and a busy process comes here for every request
    const now = clock();
    let soonest = Number.POSITIVE_INFINITY;
    for (const queue of this.#queues) soonest = Math.min(soonest, queue.dueMs(now));
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

/** The dependencies of a queue. */
type RunQueueOptions<T> = {
  /** Returns the present permits of this queue alone; null = it needs none. */
  permits(): Permits | null;
  /** Called with the head before it is sent. False: it is dropped, and has been notified. */
  stillWants(waiting: T, nowMs: number): boolean;
};

/** Requests that wait for one rate, in order; `FairScheduler` decides when they are sent. */
export class RunQueue<T> {
  readonly #options: RunQueueOptions<T>;
  readonly #waiting: T[] = [];
  #head = 0; // index of the head, because shifting a long array costs its length

  constructor(options: RunQueueOptions<T>) {
    this.#options = options;
  }

  get length(): number {
    return this.#waiting.length - this.#head;
  }

  /** Whether it needs permits of its own. */
  get isPaced(): boolean {
    return this.#options.permits() !== null;
  }

  add(waiting: T): void {
    this.#waiting.push(waiting);
  }

  /** The time when this queue has a permit for its head; infinite if that is unknown or the queue is empty. */
  dueMs(nowMs: number): number {
    if (this.length === 0) return Number.POSITIVE_INFINITY;
    return this.#options.permits()?.nextMs(nowMs) ?? nowMs;
  }

  /** Whether the head has a permit now. Drops heads that may no longer be sent. */
  isDue(nowMs: number): boolean {
    while (this.length > 0) {
      if (this.#options.stillWants(this.#waiting[this.#head]!, nowMs)) return this.dueMs(nowMs) <= nowMs;
      this.#shift();
    }
    return false;
  }

  /** Removes the head and uses its permit; call it after `isDue`. */
  take(nowMs: number): T {
    this.#options.permits()?.take(nowMs);
    return this.#shift();
  }

  /** See `Permits`; 0 if it needs none. */
  get takenLeasedAt(): number {
    return this.#options.permits()?.takenLeasedAt ?? 0;
  }

  /** Returns one of its own permits that was not used after all. */
  putBack(leasedAt: number): void {
    this.#options.permits()?.putBack(leasedAt);
  }

  /** Drops requests that may no longer be sent. */
  revalidate(nowMs: number): void {
    const all = this.#waiting.splice(0).slice(this.#head);
    this.#head = 0;
    for (const waiting of all) if (this.#options.stillWants(waiting, nowMs)) this.#waiting.push(waiting);
  }

  #shift(): T {
    const first = this.#waiting[this.#head++]!;
    if (this.#head === this.#waiting.length) {
      this.#waiting.length = 0;
      this.#head = 0;
    }
    return first;
  }
}
