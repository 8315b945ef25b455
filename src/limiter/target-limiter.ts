import { Distance } from '../redis/distance.ts';
import { control, type TargetControl } from './learning/control.ts';
import type { Alarm, Sums } from './learning/sums.ts';
import { AnswerTally, canBeIdSpecific, forgivenOutageMs, isTrouble, OutageDetector, type Signal } from './outage.ts';
import { ClockOffset, Permits } from './permits.ts';
import { grantedLivesMs } from './script-fields.ts';
import { type Stop, stopFromStored, stopText, storedSaying, type TokenWait } from './stop.ts';
import { LoadMeter, type PermitTaker, type TargetCall, type TargetReply } from './target-call.ts';
import { Throttles } from './throttles.ts';

/** A limiter's connection to Redis; see `openTargetCalls`. */
type TargetCalls = {
  call(call: TargetCall): Promise<TargetReply>;
  store(turn: number, before: TargetControl | null, next: TargetControl): Promise<boolean>;
};

type LimiterOptions = {
  calls: TargetCalls;
  /** A name that no other process of the target has. */
  process: string;
  /** The only run that this process deletes; '' = the detached runs. */
  run: string;
  /** The number of requests that this process may have in flight. */
  connections: number;
  /** Monotonic ms. */
  clock: () => number;
  /** Whether this process had next to no time to spare since the last call; see worker/target-sender.ts. */
  isBusy(nowMs: number): boolean;
  /** The stop of this process alone, or null. */
  stopHere(): Stop | null;
  /** Why this process has no token, and since when (ms since 1970); null while it has one. */
  tokenWait?(): TokenWait | null;
  /** The stops of the target as this process knows them, because Redis may have lost one. By default the stops in Redis. */
  actions?: { readonly isSure: boolean; readonly stop: Stop | null; sawStop(stored: string): void };
  /** Called when there may be permits again, or none any more. */
  onChange(): void;
};

/** Why sending is not allowed, for people, and the remaining time in ms; 0 = unknown. */
export type Hold = { reason: string; leftMs: number };

/** `ceiling`: what the limit of the target allows here, 0 = it has none. `budget`: see `replyNumbers`. */
type Known = Pick<TargetReply, 'rate' | 'ceiling' | 'phase' | 'limitMet' | 'budget'> & { hold: Hold | null };

/** What a process has got until now; see `callArguments`. */
const nothingGot = { granted: 0, heardAt: 0, limitId: '' };

const callEveryMs = 100;
const callIdleEveryMs = 1_000;

/**
 * The client of a target's limiter in one process. Every 100 ms (every second while idle) it reports answers and leases permits for the next 100 ms.
 * It says by when it calls again. All reports together lead to one learned state for all processes. Without Redis there are no permits, and nothing is
 * sent. States: stopped → started → stopped.
 */
export class TargetLimiter {
  readonly permits = new Permits();
  /** How far Redis is from this process. */
  readonly distance = new Distance();
  readonly #options: LimiterOptions;
  readonly #outage = new OutageDetector();
  #timer: NodeJS.Timeout | null = null;
  #isCalling = false;
  #callAgain = false;
  #calledAt = Number.NEGATIVE_INFINITY;
  #said = '';
  #everyMs = (everyMs: number) => everyMs;
  #users = 0;
  #tally = new AnswerTally();
  #got = nothingGot;
  #gotAt = Number.NEGATIVE_INFINITY;
  readonly #holds: Throttles;
  #unavailableSinceMs: number | null = null; // since when the server has answered with a 5xx and a Retry-After
  #alarm: Alarm | null = null; // an alarm that Redis does not know yet
  #claim: { remaining: number; quota: number | null; endsAtMs: number } | null = null; // by our clock
  #reply: TargetReply | null = null;
  #epoch = 0; // of the reply
  #stop: Stop | null = null; // the stop of the whole target
  readonly #offset = new ClockOffset();
  #taker: PermitTaker = { takeStarved: () => false, isPaced: false };
  readonly #load: LoadMeter;

  constructor(options: LimiterOptions) {
    this.#options = options;
    this.#holds = new Throttles(options.clock);
    const measure = (nowMs: number) => ({ starved: this.#taker.takeStarved(), busy: options.isBusy(nowMs) });
    this.#load = new LoadMeter(measure, callEveryMs / 2);
  }

  /** `everyMs`: how often this process now does what it does every so many ms while there is work. */
  start(taker: PermitTaker, everyMs = this.#everyMs): void {
    this.#taker = taker;
    this.#everyMs = everyMs;
    this.#timer = setInterval(() => this.#tick(), callEveryMs);
  }

  /** While this process has nothing to send, it calls once a second, and while it is idle even less often. What it says of itself is never old. */
  #tick(): void {
    const restMs = this.#users > 0 ? 0 : this.#everyMs(this.stopped === null ? callIdleEveryMs : 0);
    if (this.#options.clock() - this.#calledAt >= restMs || this.#saying() !== this.#said) void this.#call();
  }

  #saying(restMs = this.#everyMs(callIdleEveryMs)): string {
    const { stopHere, tokenWait, run } = this.#options;
    const redisMs = this.distance.saidMs || undefined;
    return storedSaying({ stop: stopHere(), token: tokenWait?.() ?? null, run, restMs, redisMs });
  }

  /** Withdraws from the target and gives unused permits back. If Redis is away, they count as used. Never throws. */
  async stop(): Promise<void> {
    if (this.#timer === null) return;
    clearInterval(this.#timer);
    this.#timer = null;
    this.permits.drop();
    const last = { wants: false, restMs: 0, here: this.#saying(0) }; // it does not call again
    await this.#options.calls.call({ ...this.#report(), ...last }).catch(() => {});
  }

  /** Begins to lease permits, until `leave`: there are requests to send. */
  enter(): void {
    if (this.#users++ === 0) void this.#call();
  }

  leave(): void {
    this.#users--;
  }

  get inFlightShare(): number {
    return this.#reply?.inFlightShare ?? 1;
  }

  /** The time for which sending is not allowed because the server asked for it, in ms. */
  get throttledMs(): number {
    return this.#holds.leftMs;
  }

  /** The stop in force, or null. It lasts until an operator lifts it. */
  get stopped(): Stop | null {
    return this.#stop ?? this.#options.actions?.stop ?? this.#options.stopHere();
  }

  /** Whether sending is not allowed now: the server or an operator asked for that. */
  get isBlocked(): boolean {
    return this.throttledMs > 0 || this.stopped !== null;
  }

  /**
   * Whether no request succeeds, as far as is known, so that a failure says nothing about its id. Not after 15 minutes: if every remaining id makes
   * the server fail, their attempts have to be counted.
   */
  get isCircuitOpen(): boolean {
    const now = this.#options.clock();
    if (this.#alarm !== null && !this.#reply?.outageAt) return true;
    if (this.#unavailableSinceMs !== null && now - this.#unavailableSinceMs < forgivenOutageMs) return true;
    const reply = this.#reply;
    if (reply === null || reply.outageAt === 0) return false;
    return now - this.#offset.ms - reply.outageAt < forgivenOutageMs;
  }

  /** The duration of the present outage of this kind, in ms; 0 = none. */
  outageMs(kind: Alarm['kind']): number {
    const reply = this.#reply;
    if (reply === null || reply.closed !== kind) return 0;
    const since = kind === 'unreachable' ? reply.unreachableAt : reply.outageAt;
    return Math.max(0, this.#options.clock() - this.#offset.ms - since);
  }

  /** Counts a request that is sent now, and returns the epoch of its permit. */
  recordSent(nowMs: number): number {
    this.#tally.sent++;
    const reply = this.#reply;
    return reply === null || nowMs - this.#offset.ms < reply.validFrom ? 0 : this.#epoch;
  }

  /**
   * Records the statement of an answer about the target. `why`: the reason of an outage, for people. `hasFailed`: the id has failed before, so its
   * new failure may be its own fault.
   */
  observe(epoch: number, signal: Signal, ms: number, why: string, hasFailed = false): void {
    const isBack = signal === 'nothing' && this.#reply?.closed === 'unreachable'; // a 401 also shows that the API can be reached
    this.#tally.add(epoch, isBack ? 'accepted' : signal, ms);
    if (signal === 'unavailable') this.#unavailableSinceMs ??= this.#options.clock();
    if (signal === 'accepted') {
      this.#alarm = null;
      this.#unavailableSinceMs = null;
      this.#holds.succeed();
    }
    if (epoch > 0 && epoch !== this.#epoch) return;
    if (hasFailed && canBeIdSpecific(signal)) return;
    const isProbe = this.#reply !== null && this.#reply.closed !== '' && isTrouble(signal);
    if (this.#outage.observe(signal) || isProbe) this.#trip(signal === 'unreachable' ? 'unreachable' : 'trouble', why);
  }

  /** Lets all processes send nothing for `ms`, as the server asked. Answers that were in flight do not extend it. */
  throttleFor(ms: number, why: string): void {
    if (this.#holds.request(ms, why)) this.#close();
  }

  /**
   * Records what the server reports: the requests left for the next `resetMs`, out of `quota` per window (null = unknown). The latest report counts.
   */
  announce({ remaining, quota, resetMs }: { remaining: number; quota: number | null; resetMs: number }): void {
    this.#claim = { remaining, quota, endsAtMs: this.#options.clock() + resetMs };
  }

  /** Whether a request of this epoch was sent before an operator released the throttle. Its answer then asks for what was released. */
  isReleased(epoch: number): boolean {
    return epoch > 0 && epoch < (this.#reply?.releasedEpoch ?? 0);
  }

  /** The known facts about the target now; null before the first answer of Redis. */
  get known(): Known | null {
    if (this.#reply === null) return null;
    const { rate, ceiling, phase, limitMet, budget } = this.#reply;
    return { rate, ceiling, phase, limitMet, hold: this.#holdWords(this.#reply), budget };
  }

  #holdWords(reply: TargetReply): Hold | null {
    if (this.stopped !== null) return { reason: stopText(this.stopped), leftMs: 0 };
    if (this.throttledMs > 0) return { reason: this.#holds.why, leftMs: this.throttledMs };
    return reply.outageWhy === '' ? null : { reason: reply.outageWhy, leftMs: 0 };
  }

  #release(): void {
    this.#alarm = null;
    this.#unavailableSinceMs = null;
    this.#holds.release();
  }

  #trip(kind: Alarm['kind'], why: string): void {
    if (this.#alarm !== null) return;
    this.#alarm = { why, kind };
    if (this.#reply?.closed === '') this.#close();
  }

  /** Stops sending, and reports that at once. */
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
      this.#calledAt = before;
      const call = this.#report();
      const reply = await this.#options.calls.call(call);
      if ((reply.closed !== '' || reply.failsAlone > 0) && this.#alarm === call.alarm) this.#alarm = null;
      this.distance.observe(this.#options.clock() - before);
      this.#offset.observe(before, this.#options.clock(), reply.now);
      this.#take(reply, call);
      if (reply.failsAlone > 0) {
        this.#holds.backOffLocally(call.alarm?.why ?? '');
        this.permits.drop();
      }
      if (reply.turn > 0) this.#control(reply);
      else if (this.#alarm !== null && call.epoch !== reply.epoch) this.#callAgain = true; // the outage was not recorded
    } catch {
      // No answer, no new permits: the leased permits expire by themselves. The counted answers are lost, which delays learning a little.
    } finally {
      this.#isCalling = false;
    }
    if (this.#callAgain) void this.#call();
  }

  #report(): TargetCall {
    const { connections } = this.#options;
    const stopHere = this.#options.stopHere();
    const call: TargetCall = {
      process: this.#options.process,
      wants: this.#users > 0 && this.throttledMs < soonMs + this.distance.leadMs && stopHere === null,
      till: this.permits.till,
      ...this.permits.takeUnused(),
      ...(this.#options.clock() - this.#gotAt < grantedLivesMs ? this.#got : nothingGot),
      epoch: this.#reply?.epoch ?? '0',
      connections,
      hold: this.#holds.report(),
      alarm: this.#alarm,
      claim: this.#claimNow(),
      tally: this.#tally,
      ...this.#load.at(this.#options.clock()),
      distance: this.distance,
      restMs: this.#everyMs(callIdleEveryMs),
      here: this.#saying(),
    };
    this.#said = call.here;
    this.#tally = new AnswerTally();
    this.#claim = null;
    return call;
  }

  #claimNow(): TargetCall['claim'] {
    if (this.#claim === null) return null;
    const { remaining, quota, endsAtMs } = this.#claim;
    return { remaining, quota, forMs: Math.max(0, endsAtMs - this.#options.clock()) };
  }

  #take(reply: TargetReply, { granted, limitId }: TargetCall): void {
    this.#got = { granted: granted + reply.count, heardAt: reply.now, limitId: reply.limitId || limitId };
    this.#gotAt = this.#options.clock();
    const epoch = this.#reply?.epoch ?? '0';
    if (Number(epoch) < Number(reply.dropEpoch)) this.permits.drop();
    if (epoch !== reply.epoch) this.#outage.reset();
    if (Number(epoch) < reply.releasedEpoch) this.#release();
    this.#reply = reply;
    this.#epoch = Number(reply.epoch);
    this.#stop = stopFromStored(reply.stop);
    this.#options.actions?.sawStop(reply.stop);
    this.#holds.receive(reply.holdUntil + this.#offset.ms, reply.holdWhy);
    const { first, gap, count, now } = reply;
    const till = String(first + gap * count);
    const lease = { firstMs: first + this.#offset.ms, gapMs: gap, count, leasedAt: now, till };
    const liveMs = this.#taker.isPaced ? runPaceSlackMs : undefined;
    this.permits.add(lease, this.#options.clock(), reply.closed === '' ? liveMs : probeLivesMs + this.distance.leadMs);
    const isTooEarly = this.throttledMs > 0 && lease.firstMs < this.#options.clock() + this.throttledMs;
    const isUnreported = this.#alarm !== null && reply.closed === ''; // an outage that the lease does not know yet
    const mayBeLost = this.#options.actions?.isSure === false; // an action that forbids these requests
    if (this.stopped !== null || mayBeLost || isTooEarly || isUnreported) this.permits.drop();
    this.#options.onChange();
  }

  /** Decides the next state for all processes, which follow from their next call on. This process calls at once. */
  #control(reply: TargetReply): void {
    const before = reply.learned === '' ? null : (JSON.parse(reply.learned) as TargetControl);
    const next = control(before, JSON.parse(reply.seen) as Sums);
    // Not awaited: Redis runs it before the next call. A state that is not stored delays learning a little.
    this.#options.calls.store(reply.turn, before, next).catch(() => {});
    this.#callAgain ||= this.#users > 0;
  }
}

const probeLivesMs = 1_000;
const runPaceSlackMs = 200; // how long permits wait for the permits of a run's own rate, which come at other moments
const soonMs = 150; // how early permits for the end of a throttle are leased
