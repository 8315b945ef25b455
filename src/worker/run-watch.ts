import { randomUUID } from 'node:crypto';
import { longestWaitMs } from '../delete/chunk-pass.ts';
import { Gate } from '../delete/gate.ts';
import { RunMeter } from '../delete/meters.ts';
import { RunRequestQueue } from '../delete/run-request-queue.ts';
import type { MeasureChanges } from '../ledger/measures.ts';
import { ClockOffset } from '../limiter/permits.ts';
import type { PaceCall, PaceReply } from '../limiter/run-pace.ts';
import { chunkSize } from '../model/row.ts';
import { maxJobs } from '../queue/consumer.ts';

const everyMs = 100;

/** Asks Redis about a run; see `openPaceCalls`. */
type AskRun = (run: string, call: PaceCall) => Promise<PaceReply>;

/** What the watch depends on. */
export type WatchOptions = {
  ask: AskRun;
  /** Monotonic ms. */
  clock: () => number;
  /** A run that was running when this process heard of it last is halted. */
  halted(run: string): void;
  /** Called after gates have closed, and when there may be permits. */
  onChange(): void;
  /**
   * What holds for all runs at the moment: whether nothing may leave, the known limit per second (null = none is known), and how many tokens
   * were fetched so far.
   */
  conditions(): { isHeld: boolean; limit: number | null; refreshes: number };
  /** Says that this process is alive and holds chunks of a run of which nothing is sent any more. */
  hold(run: string, process: string): Promise<void>;
  /** Stores what was measured. */
  store(run: string, changes: MeasureChanges): Promise<void>;
};

const storeEveryMs = 1_000;
const holdEveryMs = 1_000;
const minChunks = 2;
const postponed = { leastMs: 500, share: 0.02, mostMs: 5_000 };

type WatchedRun = {
  gate: Gate;
  line: RunRequestQueue;
  meter: RunMeter;
  users: number;
  till: string;
  isAsking: boolean;
  wasRunning: boolean;
  measuredAt: number;
  refreshes: number;
  storedAt: number;
};

/**
 * Asks ten times a second about the runs in hand, keeps their gates, and leases permits of their own rates. A run that isn't
 * `running`, or of which Redis said nothing for a second, has its gate closed. States: stopped → started → stopped.
 */
export class RunWatch {
  readonly #options: WatchOptions;
  readonly #processId = randomUUID().slice(0, 8);
  readonly #runs = new Map<string, WatchedRun>();
  readonly #idle = new Map<string, WatchedRun>(); // handed back until a wait is over, which is time that the run loses
  readonly #leased = new Map<string, number>(); // chunks by run, also of runs that have stopped
  readonly #waitsUntil = new Map<string, number>(); // runs whose own rate brings no permit before
  readonly #offset = new ClockOffset();
  #timer: NodeJS.Timeout | null = null;
  #polledAt = 0;
  #heldAt = 0;
  #heldMs = 0;

  constructor(options: WatchOptions) {
    this.#options = options;
  }

  start(): void {
    this.#polledAt = this.#options.clock();
    this.#timer = setInterval(() => this.#poll(), everyMs);
  }

  stop(): void {
    if (this.#timer) clearInterval(this.#timer);
    this.#timer = null;
    for (const run of this.#idle.keys()) this.#endIdle(run);
    for (const { gate, line } of this.#runs.values()) {
      gate.close();
      line.close();
    }
  }

  /** The runs in hand that may go on. */
  get runs(): string[] {
    return [...this.#runs].filter(([, { gate }]) => !gate.closed.aborted).map(([run]) => run);
  }

  /** How long runs had to wait in this process because nothing might leave, in ms. */
  get heldMs(): number {
    return this.#heldMs;
  }

  /** How many chunks are in hand, of all runs. */
  get chunks(): number {
    let sum = 0;
    for (const { users } of this.#runs.values()) sum += users;
    return sum;
  }

  /** Whether a chunk of this run is in hand. */
  hasChunks(run: string): boolean {
    return this.#runs.has(run);
  }

  /** Whether a run has no use for a chunk now, because its own rate brought no permit when it was last at work. */
  waitsForPermit(run: string): boolean {
    const until = this.#waitsUntil.get(run) ?? 0;
    if (until > this.#options.clock()) return true;
    this.#waitsUntil.delete(run);
    return false;
  }

  /**
   * Whether the chunks of this run in hand are enough for its own rate: more would only keep the chunks of others out. Beside other runs
   * those with a rate take a second chunk only while half of the places are free.
   */
  isFull(run: string): boolean {
    if (this.waitsForPermit(run)) return true;
    const known = this.#runs.get(run);
    if (known === undefined || known.line.perSecond === null) return false;
    if (this.#runs.size > 1 && this.chunks >= maxJobs / 2) return true;
    return known.users >= minChunks + Math.ceil(known.line.perSecond / chunkSize);
  }

  /** How long a chunk is put off whose run has enough in hand: a slow run won't need it soon. */
  postponesMs(run: string): number {
    const perSecond = this.#runs.get(run)?.line.perSecond ?? Number.POSITIVE_INFINITY;
    const oneChunkMs = (1_000 * chunkSize) / perSecond;
    return Math.min(postponed.mostMs, Math.max(postponed.leastMs, postponed.share * oneChunkMs));
  }

  /** The gate, the line and the meter of a run for one more chunk; each `enter` needs one `leave`. */
  enter(run: string): { gate: Gate; line: RunRequestQueue; meter: RunMeter } {
    this.#leased.set(run, (this.#leased.get(run) ?? 0) + 1);
    const known = this.#runs.get(run);
    if (known !== undefined && !known.gate.closed.aborted) {
      known.users++;
      return known;
    }
    const { clock, conditions } = this.#options;
    const now = clock();
    const watched = {
      ...{ gate: new Gate(clock), line: new RunRequestQueue(clock), meter: new RunMeter() },
      ...{ users: 1, till: '0', isAsking: false, wasRunning: false },
      ...{ measuredAt: now, storedAt: now, refreshes: conditions().refreshes },
    };
    if (known !== undefined) void this.#store(run, known);
    this.#runs.set(run, watched);
    this.#endIdle(run);
    void this.#askPace(run, watched);
    return watched;
  }

  leave(run: string, gate: Gate): void {
    const left = (this.#leased.get(run) ?? 0) - 1;
    if (left > 0) this.#leased.set(run, left);
    else this.#leased.delete(run);
    const known = this.#runs.get(run);
    if (known?.gate !== gate || --known.users > 0) return;
    if (known.line.waitMs > longestWaitMs) this.#waitsUntil.set(run, this.#options.clock() + longestWaitMs);
    known.line.close();
    this.#runs.delete(run);
    this.#returnUnused(run, known.line);
    const rests = this.#timer !== null && !gate.closed.aborted && this.#options.conditions().isHeld;
    if (rests) this.#idle.set(run, known);
    else void this.#store(run, known);
  }

  /** Closes the gate of a run at once, before Redis is asked again. */
  close(run: string): void {
    this.#runs.get(run)?.gate.close();
    this.#options.onChange();
  }

  /** Permits that nobody here will use: without that they would be missing from the run's quotas. */
  #returnUnused(run: string, { permits }: RunRequestQueue): void {
    permits.drop();
    const unused = permits.takeUnused();
    if (unused === 0) return;
    this.#options.ask(run, { process: this.#processId, wants: false, till: '0', unused }).catch(() => {}); // then they are lost
  }

  #poll(): void {
    const { clock, conditions } = this.#options;
    const ms = clock() - this.#polledAt;
    this.#polledAt += ms;
    if (this.#runs.size + this.#idle.size > 0 && conditions().isHeld) this.#heldMs += ms;
    for (const [run, resting] of this.#idle) {
      this.#measure(run, resting);
      if (!this.#options.conditions().isHeld) this.#endIdle(run);
    }
    for (const [run, watched] of this.#runs) {
      watched.gate.closeIfStale();
      this.#measure(run, watched);
      if (watched.gate.closed.aborted) this.#options.onChange();
      else void this.#askPace(run, watched);
    }
    this.#hold(clock());
  }

  /** Where a run was cancelled, its end waits for the chunks in hand, and only for those who say that they have some. */
  #hold(now: number): void {
    if (now - this.#heldAt < holdEveryMs) return;
    this.#heldAt = now;
    const going = new Set(this.runs);
    // One that is lost is made up for by the next.
    for (const run of this.#leased.keys())
      if (!going.has(run)) void this.#options.hold(run, this.#processId).catch(() => {});
  }

  #endIdle(run: string): void {
    const resting = this.#idle.get(run);
    if (resting === undefined) return;
    this.#idle.delete(run);
    void this.#store(run, resting);
  }

  #measure(run: string, watched: WatchedRun): void {
    const { clock, conditions } = this.#options;
    const now = clock();
    const { isHeld, limit: known, refreshes } = conditions();
    const limit = Math.min(known ?? Number.POSITIVE_INFINITY, watched.line.perSecond ?? Number.POSITIVE_INFINITY);
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

  async #store(run: string, { meter }: WatchedRun): Promise<void> {
    await this.#options.store(run, meter.take()).catch(() => {}); // figures for people; the ledger doesn't depend on them
  }

  async #askPace(run: string, watched: WatchedRun): Promise<void> {
    if (watched.isAsking) return;
    watched.isAsking = true;
    const { ask, clock, onChange } = this.#options;
    const { gate, line } = watched;
    const askedAt = clock();
    try {
      const unused = line.takeUnused();
      const reply = await ask(run, { process: this.#processId, wants: true, till: watched.till, unused });
      if (reply.count > 0) watched.till = String(reply.first + reply.gap * reply.count);
      if (reply.state === 'halted' && watched.wasRunning && !gate.closed.aborted) this.#options.halted(run);
      watched.wasRunning = reply.state === 'running';
      if (watched.wasRunning) gate.confirm(askedAt);
      else gate.close();
      this.#offset.observe(askedAt, clock(), reply.now);
      line.receive(reply, this.#offset.ms);
      if (this.#runs.get(run) !== watched) this.#returnUnused(run, line); // its last chunk went meanwhile
      onChange();
    } catch {
      // No answer: the gate closes by itself when its second is over.
    } finally {
      watched.isAsking = false;
    }
  }
}
