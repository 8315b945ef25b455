/**
 * Permits, as points in time in ms of the caller's monotonic clock: the first at `firstMs`, each further one `gapMs` later. `leasedAt`: when, by the
 * clock of Redis. `till`: the end of the lease by that clock, as Redis gave it.
 */
type Lease = { firstMs: number; gapMs: number; count: number; leasedAt: number; till?: string };

/** The number of unused permits, and when the first of them was leased, by the clock of Redis. */
export type Unused = { unused: number; unusedSince: number };

type Held = Lease & { gotMs: number; maxLateMs: number };

const usualMaxLateMs = 40;
const timerMs = 0.75; // how much too early a timer may fire
const close = 0.75; // a request comes close after another one if it comes sooner than this part of their distance

/**
 * The leased permits of a process. A permit may be used from its time on, for 40 ms. Permits that passed while the process was suspended are given
 * back, so that it never catches up in one burst. Permits that had passed when the lease came may be used for 40 ms from then on. If the target
 * refuses requests that come too close, there is no catching up: each permit waits for its distance from the last.
 */
export class Permits {
  readonly #leases: Held[] = [];
  #unused = 0;
  #unusedSince = 0;
  #takenLeasedAt = 0;
  #till = '0';
  #taken = { dueMs: Number.NEGATIVE_INFINITY, atMs: Number.NEGATIVE_INFINITY };
  #wasClose = false;
  readonly #strictness = new Strictness();

  /** Adds permits that came now. `maxLateMs`: the time that these may wait. */
  add(lease: Lease, nowMs: number, maxLateMs = usualMaxLateMs): void {
    if (lease.count === 0) return;
    this.#leases.push({ ...lease, gotMs: nowMs, maxLateMs });
    this.#till = lease.till ?? '0';
  }

  /** The end of the last lease by the clock of Redis, from where the next one continues; '0' without one, or once it was dropped. */
  get till(): string {
    return this.#till;
  }

  /** Uses a permit that is due; false if there is none. */
  take(nowMs: number): boolean {
    const lease = this.#current(nowMs);
    if (lease === undefined || this.#dueMs(lease) > nowMs) return false;
    this.#wasClose = nowMs - this.#taken.atMs < close * this.#distanceMs(lease);
    this.#taken = { dueMs: lease.firstMs, atMs: nowMs };
    lease.firstMs += lease.gapMs;
    lease.count--;
    this.#takenLeasedAt = lease.leasedAt;
    return true;
  }

  /** Whether the last taken permit came close after the one before; `recordAnswer` needs it. */
  get wasClose(): boolean {
    return this.#wasClose;
  }

  /** Counts the answer to a request. `wasClose`: the value for its permit. */
  recordAnswer(wasClose: boolean, wasRefused: boolean): void {
    this.#strictness.observe(wasClose, wasRefused);
  }

  /** The time when the last taken permit was leased; `putBack` needs it. */
  get takenLeasedAt(): number {
    return this.#takenLeasedAt;
  }

  /** Gives back a taken permit that was not used after all. */
  putBack(leasedAt: number): void {
    this.#giveBack({ leasedAt }, 1);
  }

  /** Whether `take` would give a permit. */
  isDue(nowMs: number): boolean {
    return this.nextMs(nowMs) <= nowMs;
  }

  /** The time when the next permit is due; infinite without one. */
  nextMs(nowMs: number): number {
    const lease = this.#current(nowMs);
    return lease === undefined ? Number.POSITIVE_INFINITY : this.#dueMs(lease);
  }

  #dueMs(lease: Held): number {
    return this.#strictness.isStrict
      ? Math.max(lease.firstMs, this.#taken.atMs + this.#distanceMs(lease) - timerMs)
      : lease.firstMs;
  }

  /** The distance from the last taken permit to the next. */
  #distanceMs({ firstMs, gapMs }: Held): number {
    return Math.min(gapMs, firstMs - this.#taken.dueMs);
  }

  /** The number of leased and unused permits, due or not yet. */
  inHand(nowMs: number): number {
    this.#current(nowMs);
    return this.#leases.reduce((sum, { count }) => sum + count, 0);
  }

  /** Drops all permits: sending is not allowed now, or their rate is no longer valid. */
  drop(): void {
    this.#till = '0';
    for (const lease of this.#leases.splice(0)) this.#giveBack(lease, lease.count);
  }

  /** Whether there are unused permits that were not given back yet. */
  get hasUnused(): boolean {
    return this.#unused > 0;
  }

  /** Takes the permits that were not used since the last call, to give them back. */
  takeUnused(): Unused {
    const taken = { unused: this.#unused, unusedSince: this.#unusedSince };
    this.#unused = 0;
    return taken;
  }

  /** The first lease with permits that are not too late. */
  #current(nowMs: number): Held | undefined {
    for (;;) {
      const lease = this.#leases[0];
      if (lease === undefined) return undefined;
      const oldestMs = nowMs - lease.maxLateMs;
      const late = oldestMs - lease.firstMs;
      if (late > 0 && oldestMs > lease.gotMs) this.#skip(lease, Math.min(lease.count, Math.ceil(late / lease.gapMs)));
      if (lease.count > 0) return lease;
      this.#leases.shift();
    }
  }

  #skip(lease: Lease, missed: number): void {
    lease.firstMs += missed * lease.gapMs;
    lease.count -= missed;
    this.#giveBack(lease, missed);
  }

  #giveBack({ leasedAt }: Pick<Lease, 'leasedAt'>, permits: number): void {
    if (permits > 0) this.#unusedSince = this.#unused > 0 ? Math.min(this.#unusedSince, leasedAt) : leasedAt;
    this.#unused += permits;
  }
}

/** The lead of our clock over the clock of Redis, and the error of that, in ms. */
type Sample = { offsetMs: number; errorMs: number; atMs: number };

const driftPerMs = 0.0005; // even bad clocks drift apart by at most half a millisecond per second

/**
 * The distance between our monotonic clock and the clock of Redis, from calls and their answers. Redis answered at some unknown moment of a call, so
 * a call that took long says little. Permits placed by it would come too early or too late by up to half of its duration, and bunch with their
 * neighbours. So the recent call with the smallest error is used, until another contradicts it.
 */
export class ClockOffset {
  #best: Sample | null = null;

  /** Whether Redis has answered. */
  get isKnown(): boolean {
    return this.#best !== null;
  }

  /** Our clock − the clock of Redis, in ms; 0 before the first answer. */
  get ms(): number {
    return this.#best?.offsetMs ?? 0;
  }

  /** Records one call: when it began and when its answer came by our clock, and when Redis answered by its own clock. */
  observe(askedMs: number, answeredMs: number, redisMs: number): void {
    const middleMs = (askedMs + answeredMs) / 2;
    const sample = { offsetMs: middleMs - redisMs, errorMs: (answeredMs - askedMs) / 2, atMs: answeredMs };
    if (this.#best === null || isSurer(sample, this.#best) || contradicts(sample, this.#best)) this.#best = sample;
  }
}

function errorNow({ errorMs, atMs }: Sample, nowMs: number): number {
  return errorMs + (nowMs - atMs) * driftPerMs;
}

function isSurer(sample: Sample, best: Sample): boolean {
  return sample.errorMs <= errorNow(best, sample.atMs);
}

/** Whether the clock of Redis was set, or another server is Redis now. */
function contradicts(sample: Sample, best: Sample): boolean {
  return Math.abs(sample.offsetMs - best.offsetMs) > sample.errorMs + errorNow(best, sample.atMs);
}

const strictnessRules = {
  usual: 0.98, // the part of the former share of close requests that each further answer keeps
  kept: 0.99, // the part of the former refusals that each further refusal keeps
  refused: 5, // refusals of close requests that show strictness …
  times: 3, // … if they are this many times what chance explains, given the share of close requests at that time
  strictAnswers: 10_000, // number of answers for which strictness then holds, because one stall may look like it
};

/**
 * Whether a target refuses requests because they come close after one another, as a target does that allows no burst. Then a late process must not
 * catch up. Compares the share of close requests among refused requests with their share among all requests at that time.
 */
class Strictness {
  #closeShare = 0;
  #refusedClose = 0;
  #byChance = 0;
  #strictAnswers = 0;

  observe(wasClose: boolean, wasRefused: boolean): void {
    const close = wasClose ? 1 : 0;
    this.#closeShare = strictnessRules.usual * this.#closeShare + (1 - strictnessRules.usual) * close;
    this.#strictAnswers = Math.max(0, this.#strictAnswers - 1);
    if (!wasRefused) return;
    this.#refusedClose = strictnessRules.kept * this.#refusedClose + close;
    this.#byChance = strictnessRules.kept * this.#byChance + this.#closeShare;
    const isShown =
      this.#refusedClose >= strictnessRules.refused && this.#refusedClose >= strictnessRules.times * this.#byChance;
    if (!isShown) return;
    [this.#refusedClose, this.#byChance] = [0, 0];
    this.#strictAnswers = strictnessRules.strictAnswers;
  }

  get isStrict(): boolean {
    return this.#strictAnswers > 0;
  }
}
