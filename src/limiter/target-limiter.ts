import { AnswerTally, OutageDetector, type Signal } from './outage.ts';
import { openOwnLoad } from './own-load.ts';
import { ClockOffset, Permits } from './permits.ts';
import { type Stop, stopFromStored, stopText, storedStop } from './stop.ts';
import type { Learned, OutageKind, TargetCall, TargetReply } from './target-call.ts';
import { Throttles } from './throttles.ts';
import { updateEstimate } from './update-estimate.ts';

/** A limiter's connection to Redis; see `openTargetCalls`. */
type TargetCalls = {
  call(call: TargetCall): Promise<TargetReply>;
  learned(turn: number, learned: Learned): Promise<boolean>;
};

export type LimiterOptions = {
  calls: TargetCalls;
  /** A name that no other process of the target has. */
  process: string;
  /** Of this process, as stored; '' = none. The lowest of all processes holds. */
  rate: string;
  burst: number | null;
  /** Requests this process may have on the wire. */
  slots: number;
  /** Monotonic ms. */
  clock: () => number;
  /** What stops this process alone, or null. */
  stopHere(): Stop | null;
  /** There may be permits again, or none any more. */
  onChange(): void;
};

/** Why nothing may leave, in words, and for how much longer; 0 = nobody knows. */
export type Hold = { reason: string; leftMs: number };

const callEveryMs = 100;
const callIdleEveryMs = 1_000;
const noIdsFaultMs = 900_000;

/**
 * This process' part in the limiter of its target. Ten times a second, or once while nobody here has anything to send, it reports what
 * was answered and leases permits for the next tenth; what is learned from all reports is one state for all processes. Without Redis there are no permits, and nothing leaves.
 * States: stopped → started → stopped.
 */
export class TargetLimiter {
  readonly permits = new Permits();
  readonly #options: LimiterOptions;
  readonly #outage = new OutageDetector();
  #timer: NodeJS.Timeout | null = null;
  #isCalling = false;
  #callAgain = false;
  #restsUntil = 0;
  #users = 0;
  #tally = new AnswerTally();
  #till = '0';
  readonly #holds: Throttles;
  #unavailableSinceMs: number | null = null; // since when the server sends us away with a 5xx and a time to wait
  #noticed = nothing; // an outage that Redis doesn't know yet
  #advised: TargetCall['advised'] = null;
  #reply: TargetReply | null = null;
  #stop: Stop | null = null; // of the whole target
  readonly #offset = new ClockOffset();
  #isStarved: () => boolean = () => false;
  readonly #ownLoad: (nowMs: number) => number;

  constructor(options: LimiterOptions) {
    this.#options = options;
    this.#holds = new Throttles(options.clock);
    this.#ownLoad = openOwnLoad(options.clock());
  }

  start(isStarved: () => boolean): void {
    this.#isStarved = isStarved;
    this.#timer = setInterval(() => this.#tick(), callEveryMs);
  }

  /** Where nobody here wants to send, and Redis was told, there is little to report and nothing to ask for. A stop is told at once. */
  #tick(): void {
    if (this.#users > 0 || this.stopped !== null || this.#options.clock() >= this.#restsUntil) void this.#call();
  }

  /** Takes back what its rate forbade the others. Where Redis is away, a minute's silence says the same. */
  async stop(): Promise<void> {
    if (this.#timer === null) return;
    clearInterval(this.#timer);
    this.#timer = null;
    this.permits.drop();
    await this.#options.calls.call({ ...this.#report(), wants: false, rate: '' }).catch(() => {});
  }

  /** Somebody has requests to send from now on, until `leave`: only then permits are asked for. */
  enter(): void {
    if (this.#users++ === 0) void this.#call();
  }

  leave(): void {
    this.#users--;
  }

  /** Whether a rate was set for the target. */
  get hasRate(): boolean {
    return this.#options.rate !== '';
  }

  get inFlightShare(): number {
    return this.#reply?.inFlightShare ?? 1;
  }

  /** How long nothing may leave, in ms, because the server asked for it. */
  get throttledMs(): number {
    return this.#holds.leftMs;
  }

  /** Why nothing may leave until somebody lifts it, or null. */
  get stopped(): Stop | null {
    return this.#stop ?? this.#options.stopHere();
  }

  /** Whether nothing may leave at the moment: the server asked for it, or an operator did. */
  get isBlocked(): boolean {
    return this.throttledMs > 0 || this.stopped !== null;
  }

  /**
   * Whether nothing gets through, as far as anybody noticed, so that it is no id's fault. After a quarter of an hour that is no longer taken
   * for granted: where all that is left are ids the server can't cope with, they must come to their end.
   */
  get isCircuitOpen(): boolean {
    const now = this.#options.clock();
    if (this.#noticed.kind !== '') return true;
    if (this.#unavailableSinceMs !== null && now - this.#unavailableSinceMs < noIdsFaultMs) return true;
    const reply = this.#reply;
    if (reply === null || reply.outageKind === '') return false;
    return now - this.#offset.ms - reply.outageAt < noIdsFaultMs;
  }

  /** How long there has been an outage of this kind, in ms; 0 = none. */
  outageMs(kind: OutageKind): number {
    const reply = this.#reply;
    if (reply === null || reply.outageKind !== kind) return 0;
    const since = kind === 'unreachable' ? reply.unreachableAt : reply.outageAt;
    return Math.max(0, this.#options.clock() - this.#offset.ms - since);
  }

  /** A request leaves now: the epoch of its permit. */
  recordSent(nowMs: number): number {
    this.#tally.sent++;
    const reply = this.#reply;
    return reply === null || nowMs - this.#offset.ms < reply.validFrom ? 0 : Number(reply.epoch);
  }

  /** What the answer to a request told about the target. `why`: in words, for one that tells of trouble. */
  observe(epoch: number, signal: Signal, ms: number, why: string): void {
    this.#tally.add(epoch, signal, ms);
    if (signal === 'unavailable') this.#unavailableSinceMs ??= this.#options.clock();
    if (signal === 'accepted') {
      this.#noticed = nothing;
      this.#unavailableSinceMs = null;
    }
    if (epoch > 0 && epoch !== Number(this.#reply?.epoch)) return;
    const isProbe = this.#reply !== null && this.#reply.outageKind !== '' && isBad(signal);
    if (this.#outage.observe(signal) || isProbe) this.#trip(signal === 'unreachable' ? 'unreachable' : 'trouble', why);
  }

  /** The server wants nobody to send anything for so long. Answers that were on their way don't add to it. */
  throttleFor(ms: number, why: string): void {
    if (this.#holds.request(ms, why)) this.#close();
  }

  /** The server tells how many requests it still wants: never more than this, for so long. The latest word counts. */
  advise(perSecond: number, forMs: number): void {
    this.#advised = { perSecond, forMs };
  }

  /** Whether a request with this tag left before an operator lifted what the server asked for: its answer asks for just that. */
  isReleased(epoch: number): boolean {
    return epoch > 0 && epoch < (this.#reply?.releasedEpoch ?? 0);
  }

  /** What is known of the target now; null before the first answer of Redis. */
  get known(): { rate: number; phase: string; limitMet: number; hold: Hold | null; budget: number } | null {
    const reply = this.#reply;
    if (reply === null) return null;
    const { rate, phase, limitMet, budget } = reply;
    return { rate, phase, limitMet, hold: this.#holdWords(reply), budget };
  }

  #holdWords(reply: TargetReply): Hold | null {
    if (this.stopped !== null) return { reason: stopText(this.stopped), leftMs: 0 };
    if (this.throttledMs > 0) return { reason: this.#holds.why, leftMs: this.throttledMs };
    return reply.outageWhy === '' ? null : { reason: reply.outageWhy, leftMs: 0 };
  }

  #release(): void {
    this.#noticed = nothing;
    this.#unavailableSinceMs = null;
    this.#holds.release();
  }

  #trip(kind: OutageKind, why: string): void {
    if (this.#noticed.kind !== '') return;
    this.#noticed = { why, kind };
    if (this.#reply?.outageKind === '') this.#close();
  }

  /** The rate made a step on the way, so that nobody heard what this process has noticed. */
  #tellAgain(): void {
    this.permits.drop();
    this.#callAgain = true;
  }

  /** Nothing more leaves, and the others are told at once. */
  #close(): void {
    this.permits.drop();
    this.#options.onChange();
    void this.#call();
  }

  async #call(): Promise<void> {
    this.#callAgain = this.#isCalling;
    if (this.#isCalling || this.#timer === null) return;
    this.#isCalling = true;
    try {
      const before = this.#options.clock();
      this.#restsUntil = this.#users > 0 ? 0 : before + callIdleEveryMs;
      const call = this.#report();
      const reply = await this.#options.calls.call(call);
      if ((reply.outageWhy !== '' || reply.localBackoffMs > 0) && this.#noticed === call.outage)
        this.#noticed = nothing;
      this.#offset.observe(before, this.#options.clock(), reply.now);
      this.#take(reply);
      if (reply.localBackoffMs > 0) {
        this.#holds.backOffLocally(reply.localBackoffMs, call.outage.why);
        this.permits.drop();
      }
      if (this.#noticed.kind !== '') this.#tellAgain();
      if (reply.turn > 0) await this.#updateEstimate(reply);
    } catch {
      // No answer, no permits: those in hand run out by themselves. What was counted is lost, which costs a moment of learning.
    } finally {
      this.#isCalling = false;
    }
    if (this.#callAgain) void this.#call();
  }

  #report(): TargetCall {
    const { rate, burst, slots } = this.#options;
    const stopHere = this.#options.stopHere();
    const call: TargetCall = {
      process: this.#options.process,
      wants: this.#users > 0 && this.throttledMs < soonMs && stopHere === null,
      ...{ till: this.#till, unused: this.permits.takeUnused() },
      ...{ epoch: this.#reply?.epoch ?? '0', rate, burst: burst === null ? '' : String(burst), slots },
      ...{ hold: this.#holds.report(), outage: this.#noticed, advised: this.#advised, tally: this.#tally },
      starved: this.#isStarved(),
      busy: this.#ownLoad(this.#options.clock()) >= busyShare,
      stop: stopHere === null ? '' : storedStop(stopHere),
    };
    this.#tally = new AnswerTally();
    this.#advised = null;
    return call;
  }

  #take(reply: TargetReply): void {
    const epoch = this.#reply?.epoch ?? '0';
    if (Number(epoch) < Number(reply.dropEpoch)) this.permits.drop();
    if (epoch !== reply.epoch) this.#outage.reset();
    if (Number(epoch) < reply.releasedEpoch) this.#release();
    this.#reply = reply;
    this.#stop = stopFromStored(reply.stop);
    this.#holds.receive(reply.holdUntil + this.#offset.ms, reply.holdWhy);
    const lease = { firstMs: reply.first + this.#offset.ms, gapMs: reply.gap, count: reply.count };
    this.permits.add(lease, this.#options.clock(), reply.outageWhy === '' ? undefined : probeLivesMs);
    const isTooEarly = this.throttledMs > 0 && lease.firstMs < this.#options.clock() + this.throttledMs;
    if (this.stopped !== null || isTooEarly) this.permits.drop();
    if (reply.count > 0) this.#till = String(reply.first + reply.gap * reply.count);
    this.#options.onChange();
  }

  /** It is this process' turn to draw conclusions. They hold from the next call of each process on; its own comes at once. */
  async #updateEstimate(reply: TargetReply): Promise<void> {
    await this.#options.calls.learned(reply.turn, updateEstimate(reply));
    this.#callAgain ||= this.#users > 0;
  }
}

const probeLivesMs = 1_000;
const busyShare = 0.85;
const soonMs = 150; // permits for the end of a hold are asked for so early
const nothing: TargetCall['outage'] = { why: '', kind: '' };

function isBad(signal: Signal): boolean {
  return !['accepted', 'throttled', 'unavailable', 'nothing'].includes(signal);
}
