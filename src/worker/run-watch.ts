import { randomUUID } from 'node:crypto';
import { maxWaitMs } from '../delete/chunk-pass.ts';
import { type FirstAnswers, FirstAnswersByRun } from '../delete/first-answers.ts';
import { Gate } from '../delete/gate.ts';
import { RunMeter, type Taken } from '../delete/meters.ts';
import { Refusals } from '../delete/refusals.ts';
import { RunRequestQueue } from '../delete/run-request-queue.ts';
import { ClockOffset } from '../limiter/permits.ts';
import type { PaceCall, PaceReply } from '../limiter/run-pace.ts';
import type { Resource } from '../model/resource.ts';
import { chunkSize } from '../model/row.ts';
import { maxJobs } from '../queue/consumer.ts';
import type { Spans } from '../redis/distance.ts';

const everyMs = 100;

/** Asks Redis about a run; see `openPaceCalls`. */
type AskRun = (run: string, call: PaceCall) => Promise<PaceReply>;

type WatchOptions = {
  ask: AskRun;
  /** Monotonic ms. */
  clock: () => number;
  /** How far Redis is. */
  distance: Spans;
  /** Whether no other process sends requests of the runs of this one. */
  isAlone: boolean;
  /** Called when a run that was running is found halted. */
  halted(run: string): void;
  /** Called with the state of each run that is found. */
  saw(run: string, state: string): void;
  /** Called when the time of a running run is found to be up, until the run is paused. */
  overdue(run: string): void;
  /** Called when refusals make a run wait, with the reason. */
  waits(run: string, reason: string): void;
  /** Called after gates have closed, and when there may be permits. */
  onChange(): void;
  /**
   * The conditions for all runs now: whether sending is not allowed, the known limit per second (null = none is known), and the number of tokens
   * fetched so far.
   */
  conditions(): { isHeld: boolean; limit: number | null; refreshes: number };
  /** Records that this process is alive and holds chunks of a run that is no longer sent. */
  keepalive(run: string, process: string): Promise<void>;
  /** See `shareForm`. */
  shareForm(run: string, name: string, form: string): Promise<string>;
  /** Adds to the measures and the history of a run. */
  store(run: string, taken: Taken): Promise<void>;
};

const storeEveryMs = 1_000;
const keepaliveEveryMs = 1_000;
const minChunks = 2;
const outsideWindowMs = 10_000; // how often a run outside its window is tried: an operator may have changed the window
const postponed = { minMs: 500, share: 0.02, maxMs: 5_000 }; // share: as a part of the time that a chunk takes

/** `users`: its leased chunks. */
type WatchedRun = {
  gate: Gate;
  requestQueue: RunRequestQueue;
  meter: RunMeter;
  byResource: Map<Resource, Refusals>;
  refusals(resource: Resource): Refusals;
  firstAnswers: FirstAnswers;
  users: number;
  isAsking: boolean;
  wasRunning: boolean;
  measuredAt: number;
  refreshes: number;
  storedAt: number;
};

/**
 * Asks Redis ten times a second about the runs with leased chunks, opens and closes their gates, and leases permits of their own rates. The gate of a
 * run is closed if the run isn't `running` or Redis has not answered for a second. States: stopped → started → stopped.
 */
export class RunWatch {
  readonly #options: WatchOptions;
  readonly #processId = randomUUID().slice(0, 8);
  readonly #runs = new Map<string, WatchedRun>();
  readonly #idle = new Map<string, WatchedRun>(); // chunks returned because sending was not allowed; the wait still counts in their measures
  readonly #leased = new Map<string, number>(); // leased chunks by run, including runs that have stopped
  readonly #waitsUntil = new Map<string, number>(); // until when runs cannot send, because of their own rate or window, by the clock
  readonly #offset = new ClockOffset();
  readonly #firstAnswers: FirstAnswersByRun;
  readonly #meters = new WeakMap<Gate, RunMeter>();
  readonly #storing = new Set<Promise<void>>();
  #timer: NodeJS.Timeout | null = null;
  #polledAt = 0;
  #keepaliveAt = 0;
  #heldMs = 0;

  constructor(options: WatchOptions) {
    this.#options = options;
    this.#firstAnswers = new FirstAnswersByRun(options.shareForm);
  }

  start(): void {
    this.#polledAt = this.#options.clock();
    this.#timer = setInterval(() => this.#poll(), everyMs);
  }

  /** Stops. Returns when the measures are stored, or could not be. */
  async stop(): Promise<void> {
    if (this.#timer) clearInterval(this.#timer);
    this.#timer = null;
    for (const run of this.#idle.keys()) this.#endIdle(run);
    for (const { gate, requestQueue } of this.#runs.values()) {
      gate.close();
      requestQueue.close();
    }
    await Promise.all(this.#storing);
  }

  /** The runs with leased chunks whose gates are open. */
  get runs(): string[] {
    return [...this.#runs].filter(([, { gate }]) => !gate.closed.aborted).map(([run]) => run);
  }

  /** The time for which runs had to wait in this process because sending was not allowed, in ms. */
  get heldMs(): number {
    return this.#heldMs;
  }

  /** The number of leased chunks, over all runs. */
  get chunks(): number {
    let sum = 0;
    for (const { users } of this.#runs.values()) sum += users;
    return sum;
  }

  /** Whether a chunk of this run is leased here. */
  hasChunks(run: string): boolean {
    return this.#runs.has(run);
  }

  /** Whether a run cannot use a chunk now, because its own rate brings no permit yet, or its window is closed. */
  waits(run: string): boolean {
    return this.#waitMs(run) > 0;
  }

  #waitMs(run: string): number {
    const leftMs = (this.#waitsUntil.get(run) ?? 0) - this.#options.clock();
    if (leftMs <= 0) this.#waitsUntil.delete(run);
    return Math.max(0, leftMs);
  }

  /**
   * Whether the leased chunks of this run are enough for its own rate: more would take places from other runs. With other runs in the process, a run
   * with a rate gets a second chunk only while fewer than half of the places are taken.
   */
  isFull(run: string): boolean {
    if (this.waits(run)) return true;
    const known = this.#runs.get(run);
    if (known?.requestQueue.isOpen === false) return true;
    if (known === undefined || known.requestQueue.perSecond === null) return false;
    if (this.#runs.size > 1 && this.chunks >= maxJobs / 2) return true;
    const busyMs = 1_000 + 2 * this.#options.distance.aheadMs; // one more chunk for what is sent while others are claimed and returned
    return known.users >= minChunks + Math.ceil((known.requestQueue.perSecond * busyMs) / 1_000 / chunkSize);
  }

  /** The time for which a chunk of a full run is postponed, in ms: longer for a slower run, and for a run that waits, until it resumes. */
  postponesMs(run: string): number {
    const waitMs = this.#waitMs(run);
    if (waitMs > 0) return Math.min(postponed.maxMs, Math.max(postponed.minMs, waitMs));
    const perSecond = this.#runs.get(run)?.requestQueue.perSecond ?? Number.POSITIVE_INFINITY;
    const oneChunkMs = (1_000 * chunkSize) / perSecond;
    return Math.min(postponed.maxMs, Math.max(postponed.minMs, postponed.share * oneChunkMs));
  }

  /** Adds one more chunk of a run, and returns the run's objects in this process. Each `enter` needs one `leave`. */
  enter(run: string): Pick<WatchedRun, 'gate' | 'requestQueue' | 'meter' | 'refusals' | 'firstAnswers'> {
    this.#leased.set(run, (this.#leased.get(run) ?? 0) + 1);
    const known = this.#runs.get(run);
    if (known !== undefined && !known.gate.closed.aborted) {
      known.users++;
      return known;
    }
    const { clock, conditions, distance, isAlone, waits } = this.#options;
    const now = clock();
    const byResource = new Map<Resource, Refusals>();
    const watched = {
      gate: new Gate(clock, distance),
      requestQueue: new RunRequestQueue(clock, distance),
      meter: new RunMeter(() => clock() - this.#offset.ms),
      byResource,
      refusals: (resource: Resource) => {
        const known = byResource.get(resource);
        if (known !== undefined) return known;
        const made = new Refusals(resource, clock, isAlone, (reason) => waits(run, reason));
        byResource.set(resource, made);
        return made;
      },
      firstAnswers: this.#firstAnswers.of(run),
      users: 1,
      isAsking: false,
      wasRunning: false,
      measuredAt: now,
      storedAt: now,
      refreshes: conditions().refreshes,
    };
    if (known !== undefined) void this.#store(run, known);
    this.#runs.set(run, watched);
    this.#meters.set(watched.gate, watched.meter);
    this.#endIdle(run);
    void this.#askPace(run, watched);
    return watched;
  }

  /** Ends what `enter` began, with its gate. */
  leave(run: string, gate: Gate): void {
    const left = (this.#leased.get(run) ?? 0) - 1;
    if (left > 0) this.#leased.set(run, left);
    else this.#leased.delete(run);
    const known = this.#runs.get(run);
    if (known?.gate !== gate) {
      const meter = this.#meters.get(gate); // its requests in flight were answered after a later gate of the run had replaced it
      if (meter !== undefined) void this.#store(run, { meter });
      return;
    }
    if (--known.users > 0) return;
    this.#noteWait(run, known.requestQueue);
    known.requestQueue.close();
    this.#runs.delete(run);
    this.#returnUnused(run, known.requestQueue);
    const isIdle = this.#timer !== null && !gate.closed.aborted && this.#options.conditions().isHeld;
    if (isIdle) this.#idle.set(run, known);
    else void this.#store(run, known);
  }

  #noteWait(run: string, { waitMs, isOpen }: RunRequestQueue): void {
    if (waitMs <= maxWaitMs) return;
    const triedAfterMs = isOpen ? maxWaitMs : outsideWindowMs;
    this.#waitsUntil.set(run, this.#options.clock() + Math.min(waitMs, triedAfterMs));
  }

  /** Closes the gate of a run at once, before the next answer of Redis. */
  close(run: string): void {
    this.#runs.get(run)?.gate.close();
    this.#options.onChange();
  }

  /** Gives permits back that this process won't use, which would otherwise be missing from the run's quotas. Reports a closed window as well. */
  #returnUnused(run: string, { permits, closed }: RunRequestQueue): void {
    permits.drop();
    const taken = permits.takeUnused();
    if (taken.unused === 0 && closed.until === 0) return;
    const call = { process: this.#processId, wants: false, till: '0', ...taken, closed };
    this.#options.ask(run, call).catch(() => {}); // without an answer they are lost
  }

  #poll(): void {
    const { clock, conditions } = this.#options;
    const ms = clock() - this.#polledAt;
    this.#polledAt += ms;
    if (this.#runs.size + this.#idle.size > 0 && conditions().isHeld) this.#heldMs += ms;
    for (const [run, idle] of this.#idle) {
      this.#measure(run, idle);
      if (!this.#options.conditions().isHeld) this.#endIdle(run);
    }
    for (const [run, watched] of this.#runs) {
      watched.gate.closeIfStale();
      this.#measure(run, watched);
      if (watched.gate.closed.aborted) this.#options.onChange();
      else void this.#askPace(run, watched);
    }
    this.#sendKeepalives(clock());
  }

  /** Sends keepalives: the end of a cancelled run waits for its leased chunks, as long as their processes send keepalives. */
  #sendKeepalives(now: number): void {
    if (now - this.#keepaliveAt < keepaliveEveryMs) return;
    this.#keepaliveAt = now;
    const open = new Set(this.runs);
    // The next keepalive makes up for a lost one.
    for (const run of this.#leased.keys())
      if (!open.has(run)) void this.#options.keepalive(run, this.#processId).catch(() => {});
  }

  #endIdle(run: string): void {
    const idle = this.#idle.get(run);
    if (idle === undefined) return;
    this.#idle.delete(run);
    void this.#store(run, idle);
  }

  #measure(run: string, watched: WatchedRun): void {
    if (!this.#offset.isKnown) return; // measurements have no second yet; this time counts with the next one
    const { clock, conditions } = this.#options;
    const now = clock();
    const { isHeld, limit: known, refreshes } = conditions();
    const limit = Math.min(
      known ?? Number.POSITIVE_INFINITY,
      watched.requestQueue.perSecond ?? Number.POSITIVE_INFINITY,
    );
    const ms = now - watched.measuredAt;
    watched.measuredAt = now;
    watched.meter.add('workMs', ms);
    if (refreshes > watched.refreshes) watched.meter.add('refreshes', refreshes - watched.refreshes);
    watched.refreshes = refreshes;
    if (isHeld) watched.meter.add('heldMs', ms);
    if (limit < Number.POSITIVE_INFINITY) {
      watched.meter.add('limitedMs', ms);
      watched.meter.add('allowed', (limit * ms) / 1_000);
    }
    if (now - watched.storedAt < storeEveryMs) return;
    watched.storedAt = now;
    void this.#store(run, watched);
  }

  async #store(run: string, { meter }: Pick<WatchedRun, 'meter'>): Promise<void> {
    const storing = this.#options.store(run, meter.take()).catch(() => {}); // measures are best effort; the ledger doesn't depend on them
    this.#storing.add(storing);
    await storing;
    this.#storing.delete(storing);
  }

  async #askPace(run: string, watched: WatchedRun): Promise<void> {
    if (watched.isAsking) return;
    watched.isAsking = true;
    const { ask, clock, onChange } = this.#options;
    const { gate, requestQueue, byResource } = watched;
    const askedAt = clock();
    try {
      const taken = requestQueue.takeUnused();
      const { isOpen, closed } = requestQueue;
      const call = {
        process: this.#processId,
        wants: isOpen,
        till: requestQueue.permits.till,
        ...taken,
        distance: this.#options.distance,
        closed,
        reports: [...byResource.values()].flatMap(({ report }) => report ?? []),
      };
      const reply = await ask(run, call);
      if (reply.state === 'halted' && watched.wasRunning && !gate.closed.aborted) this.#options.halted(run);
      if (reply.state === 'halted') this.#firstAnswers.forget(run);
      this.#options.saw(run, reply.state);
      if (reply.state === 'overdue') this.#options.overdue(run);
      for (const refusals of byResource.values()) {
        refusals.expect(reply.expected);
        refusals.hear(reply.others, askedAt);
      }
      watched.wasRunning = reply.state === 'running';
      if (watched.wasRunning) gate.confirm(askedAt);
      else gate.close();
      this.#offset.observe(askedAt, clock(), reply.now);
      requestQueue.receive(reply, this.#offset.ms);
      if (this.#runs.get(run) !== watched) this.#returnUnused(run, requestQueue); // its last chunk was returned before the answer
      onChange();
    } catch {
      // No answer: the gate closes by itself after a second.
    } finally {
      watched.isAsking = false;
    }
  }
}
