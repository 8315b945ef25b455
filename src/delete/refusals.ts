import { plural } from '../format.ts';
import type { HaltCode } from '../ledger/run.ts';
import { expectFlag, probes, refusalOf, refusalsInARow } from '../ledger/thresholds.ts';
import type { ExpectedRefusals, RefusalReport } from '../limiter/run-pace.ts';
import type { Resource } from '../model/resource.ts';
import { visible } from '../model/visible.ts';
import { Spells } from './spells.ts';

/** The judgement on an id that the API refused. */
export type Belief =
  /** The answer is about this id. */
  | 'believed'
  /** The API says that the id is not there, as of all that came after it, and there is no way to know whether that is true. */
  | 'unproven'
  /** Ask for it again: at once, because it shows whether the API still refuses everything; after seconds; or after a longer wait. */
  | 'probe'
  | 'ask again'
  | 'ask later'
  /** The run has to halt; `haltOf` says why. */
  | 'halt'
  /** Sending is no longer allowed: the id stays open. */
  | 'ended';

const endsAfter = 2; // accepted answers in a row: answers on many connections arrive slightly out of order
const pairs = 2; // ids of a streak that chance can explain, in each process
const suspicious = 8; // ids beyond these pairs, over all processes
const answersMax = 2; // answers for one id that a suspicious time can put in doubt; a long streak in this process always does
const unlikely = { below: 0.01, shareMax: 0.2 }; // the chance of a streak at the end of a list, and the share of such ids that it may be based on
const idle = { shortMs: 250, longMs: 2_000, long: 3 }; // long: the number of ids from which `longMs` applies
const probeAfterMs = 500; // the first one; each later one waits twice as long
const probeLostMs = 10_000; // another one may be sent then, although the last one has no answer
const newsMs = 1_000;
const reportedForMs = 2_000;
const slowestMaxMs = 1_000;
const slowestDecay = 0.999; // per answer
const longAgoMs = 3_600_000;
const maxExamples = 3;

/**
 * Ids that were refused, one after another, with one status. `ids`: first answers; `times`: when the last of these came; `again`: later answers, which
 * come together because the ids were asked for together; `accepted`: since the last of these answers.
 */
type Streak = {
  ids: number;
  times: number[];
  again: number;
  accepted: number;
  hasBegun: boolean;
  isOver: boolean;
  examples: string[];
};

const newStreak = (): Streak => ({
  ids: 0,
  times: [],
  again: 0,
  accepted: 0,
  hasBegun: false,
  isOver: false,
  examples: [],
});

/** What a process knows of one status. `past`: the refusals that were believed. */
type Kind = { status: number; streak: Streak; longest: { ids: number; at: number }; past: number; spells: Spells };

/** How many requests were accepted up to a time, by the clock of `Refusals`. */
export type Moment = { accepted: number; at: number };

/**
 * A refusal of an id. `isGone`: it says that the id is not there. `asked`: how often expunge asked for it again. `wasAskedLater`: also after the
 * longer wait. `before`: when it was first refused; null if this is the first time. `isInDoubt`: an earlier request may have deleted it. `ms`: how long
 * the answer took.
 */
export type Refused = {
  id: string;
  status: number;
  isGone: boolean;
  asked: number;
  wasAskedLater: boolean;
  before: Moment | null;
  isInDoubt: boolean;
  ms: number;
};

/** `isSecond`: it was refused before, and nothing was accepted since. The request was sent at `from`, and answered at `to`. */
type Waiting = Pick<Refused, 'isGone' | 'isInDoubt' | 'asked' | 'wasAskedLater'> & {
  kind: Kind;
  streak: Streak;
  from: number;
  to: number;
  isSecond: boolean;
  resolve(belief: Belief): void;
};

/**
 * A streak in which ids are sent one at a time. `refused`: how many of these were refused with its status; `isOther`: whether the last one was refused
 * with another status, which shows nothing; `nextAt`: when the next one may be sent.
 */
type Hold = { kind: Kind; streak: Streak; since: number; refused: number; isOther: boolean; nextAt: number };

type Pass = { readonly expected: number };

/**
 * Decides when a refusal is believed, with what one process knows of one run and resource. During a deployment, with a wrong token or above a limit,
 * an API refuses every id. Such refusals come in a streak, in all processes. So each refused id waits until its streak is over, or until no more
 * answers are expected. After a short streak it is believed. After a long one, or in a spell with more such ids than chance explains, it is asked for
 * again. In a streak that is too long, ids are sent one at a time. If these are refused as well, the run halts, with the ids of the streak open. At
 * the end of a list nothing ends a streak, so ids that are not there are asked for once more after a longer wait.
 */
export class Refusals {
  /** Whether ids are sent one at a time. */
  isHolding = false;
  #accepted = 0;
  readonly #resource: Resource;
  readonly #clock: () => number;
  readonly #isAlone: boolean;
  readonly #passes = new Set<Pass>();
  readonly #waiting = new Set<Waiting>();
  readonly #kinds: Kind[] = [];
  #expected: ExpectedRefusals = { absent: false, mayBeGone: 0, statuses: [] };
  #hold: Hold | null = null;
  #acceptedAt = Number.NEGATIVE_INFINITY;
  #slowestMs = 0;
  #others: readonly RefusalReport[] = [];
  #othersAcceptedAt = Number.NEGATIVE_INFINITY;
  #askedAt = Number.NEGATIVE_INFINITY;
  #idleSince: number | null = null;
  readonly #tell: (reason: string) => void;

  /** `clock`: monotonic ms. `isAlone`: no other process sends requests of this run. `tell`: called with the reason when ids have to wait. */
  constructor(resource: Resource, clock: () => number, isAlone: boolean, tell: (reason: string) => void = () => {}) {
    this.#resource = resource;
    this.#clock = clock;
    this.#isAlone = isAlone;
    this.#tell = tell;
  }

  /** Adds a pass that expects answers. `expected`: how many, including ids that wait for a belief. */
  enter(pass: Pass): void {
    this.#passes.add(pass);
  }

  leave(pass: Pass): void {
    this.#passes.delete(pass);
  }

  /** Expected refusals are believed at once, however many come in a row. */
  expect(expected: ExpectedRefusals): void {
    this.#expected = expected;
  }

  get moment(): Moment {
    return { accepted: this.#accepted, at: this.#clock() };
  }

  /** Counts an accepted request whose answer took `ms`. Called for nearly every answer, so it is cheap. */
  accept(ms: number): void {
    this.#accepted++;
    this.#took(ms);
    if (this.#kinds.length > 0 || !this.#isAlone) this.#acceptedAt = this.#clock();
    const probed = this.#hold !== null && this.#acceptedAt - ms > this.#hold.since ? this.#hold.streak : null;
    for (const kind of this.#kinds) {
      kind.spells.accept();
      if (!kind.streak.hasBegun || (++kind.streak.accepted < endsAfter && kind.streak !== probed)) continue;
      kind.streak.isOver = true;
      kind.streak = newStreak();
      this.#decide();
    }
  }

  /** What other processes need to know; null = nothing. */
  get report(): RefusalReport | null {
    const now = this.#clock();
    const streaks = this.#kinds.flatMap(({ status, streak, longest }) => {
      const most = Math.max(streak.ids, now - longest.at <= reportedForMs ? longest.ids : 0);
      return most > 1 ? [{ status, longest: most, lasting: this.#lastingOf(streak) }] : [];
    });
    const acceptedAgoMs = Math.min(longAgoMs, now - this.#acceptedAt);
    return streaks.length > 0 || acceptedAgoMs <= reportedForMs
      ? { resource: this.#resource, acceptedAgoMs, streaks }
      : null;
  }

  /** Takes over the reports of other processes, as read from Redis at `askedAt`. Call it ten times a second: all waiting ends here. */
  hear(others: readonly RefusalReport[], askedAt: number): void {
    this.#others = others.filter(({ resource }) => resource === this.#resource);
    this.#askedAt = askedAt;
    for (const { acceptedAgoMs } of this.#others)
      this.#othersAcceptedAt = Math.max(this.#othersAcceptedAt, askedAt - acceptedAgoMs);
    this.#decide();
  }

  /** Judges an id. An id in doubt counts for no streak, but it is believed only when the others are. */
  judge(refused: Refused, closed: AbortSignal): Promise<Belief> {
    if (this.#isExpected(refused)) {
      this.accept(refused.ms);
      return Promise.resolve('believed');
    }
    if (closed.aborted) return Promise.resolve('ended');
    const waiting = this.#begin(refused);
    return new Promise((resolve) => {
      const end = () => waiting.resolve('ended');
      waiting.resolve = (belief) => {
        this.#waiting.delete(waiting);
        closed.removeEventListener('abort', end);
        resolve(belief);
      };
      this.#waiting.add(waiting);
      closed.addEventListener('abort', end, { once: true });
      this.#decide();
    });
  }

  #begin({ id, status, isGone, asked, wasAskedLater, before, isInDoubt, ms }: Refused): Waiting {
    const kind = this.#kindOf(status);
    const { streak } = kind;
    streak.hasBegun = true;
    streak.accepted = 0;
    const isSecond = before !== null && this.#accepted === before.accepted && this.#othersAcceptedAt <= before.at;
    const to = this.#clock();
    const from = to - ms;
    this.#took(ms);
    if (before === null && !isInDoubt) {
      this.#grow(kind, id);
      kind.spells.refuse({ from, to });
    } else if (!isSecond && !isInDoubt) streak.again++;
    const hold = this.#hold;
    if (hold !== null && from > hold.since) {
      hold.isOther = streak !== hold.streak;
      hold.nextAt = hold.isOther ? to : to + probeAfterMs * 2 ** ++hold.refused;
    }
    return { kind, streak, isGone, isInDoubt, asked, wasAskedLater, from, to, isSecond, resolve: () => {} };
  }

  /** Whether a new id may be sent now to see whether the API still refuses everything. */
  get mayProbe(): boolean {
    return this.#hold !== null && this.#clock() >= this.#hold.nextAt;
  }

  /** Such an id is being sent. */
  probed(): void {
    if (this.#hold !== null) this.#hold.nextAt = this.#clock() + probeLostMs;
  }

  /** Why the run has to halt after a refusal with this status. */
  haltOf(status: number, isGone: boolean): { code: HaltCode; reason: string } {
    const kind = this.#kindOf(status);
    const { halt, said, advice } = refusalOf(status, isGone);
    const such = kind.streak.examples.map(visible).join(', ');
    const reason =
      `${this.#inARow(kind)} ids in a row ${said} (${status}) while nothing was accepted, such as ${such}; they stay open. ` +
      `Perhaps ${advice}; if such answers are expected, resume with ${expectFlag(status, isGone)}`;
    return { code: halt, reason };
  }

  #isExpected({ isGone, status }: Pick<Refused, 'isGone' | 'status'>): boolean {
    return (isGone && this.#expected.absent) || this.#expected.statuses.includes(status);
  }

  #kindOf(status: number): Kind {
    const known = this.#kinds.find((kind) => kind.status === status);
    if (known !== undefined) return known;
    const kind = {
      status,
      streak: newStreak(),
      longest: { ids: 0, at: 0 },
      past: 0,
      spells: new Spells(this.#accepted),
    };
    this.#kinds.push(kind);
    return kind;
  }

  #grow(kind: Kind, id: string): void {
    const { streak, longest } = kind;
    const now = this.#clock();
    streak.ids++;
    streak.times.push(now);
    if (streak.times.length > refusalsInARow) streak.times.shift();
    if (streak.examples.length < maxExamples) streak.examples.push(id);
    if (streak.ids >= longest.ids || now - longest.at > reportedForMs) kind.longest = { ids: streak.ids, at: now };
  }

  #took(ms: number): void {
    this.#slowestMs = Math.max(ms, this.#slowestMs * slowestDecay);
  }

  /** The streaks of other processes with the same status. */
  #othersOf({ status }: Kind) {
    return this.#others.flatMap(({ streaks }) => streaks.filter((streak) => streak.status === status));
  }

  /** The time of the last accepted request that this process knows of, over all processes. */
  get #lastAcceptedAt(): number {
    return Math.max(this.#acceptedAt, this.#othersAcceptedAt);
  }

  /** The number of ids of a streak, at most twenty, that were refused while no process had a request accepted. */
  #lastingOf({ times }: Streak): number {
    return times.filter((at) => at > this.#lastAcceptedAt).length;
  }

  /**
   * The number of ids in a row that were refused with a status: in this process, or over all processes. Of the others this process hears late, so it
   * counts them only once nothing was accepted for a while.
   */
  #inARow(kind: Kind): number {
    const { streak } = kind;
    if (this.#clock() - this.#lastAcceptedAt < newsMs) return streak.ids;
    return this.#othersOf(kind).reduce((sum, { lasting }) => sum + lasting, streak.ids);
  }

  #decide(): void {
    this.#noteIdle();
    this.#noteHold();
    let later = 0;
    for (const waiting of [...this.#waiting]) {
      const belief = this.#beliefFor(waiting);
      if (belief === 'ask later') later++;
      if (belief === 'believed') waiting.kind.past++;
      if (belief !== null) waiting.resolve(belief);
    }
    if (later > 0)
      this.#tell(`the last ${plural(later, 'ids')} were not there: the API is asked once more, a little later`);
  }

  /** Null: not decided yet. */
  #beliefFor(waiting: Waiting): Belief | null {
    const { streak, isSecond } = waiting;
    if (this.#isExpected({ isGone: waiting.isGone, status: waiting.kind.status })) return 'believed';
    if (streak === this.#hold?.streak) return this.#heldBelief(this.#hold);
    if (!streak.isOver) return this.#isIdleFor(streak) && this.#hasNews(waiting.to) ? this.#lastBelief(waiting) : null;
    if (!isSecond && this.#isSuspicious(waiting)) return 'ask again';
    return this.#hasNews(waiting.to) ? 'believed' : null;
  }

  /** An id of the streak is sent again if there are no new ones to send, or if the last one showed nothing. */
  #heldBelief(hold: Hold): Belief | null {
    if (hold.refused >= probes) return 'halt';
    if (!this.mayProbe || (this.#idleSince === null && !hold.isOther)) return null;
    hold.isOther = false;
    this.probed();
    return 'probe';
  }

  /** The belief at the end of a list, where nothing ends the streak. */
  #lastBelief(waiting: Waiting): Belief {
    const { isGone, isSecond, wasAskedLater } = waiting;
    if (!isGone || (wasAskedLater && !isSecond)) return 'believed';
    if (!this.#isUnlikely(waiting) && (isSecond || !this.#isSuspicious(waiting))) return 'believed';
    return wasAskedLater ? 'unproven' : 'ask later';
  }

  /** Whether chance does not explain the streak, given the share of such ids before it. An id that was sent before has another explanation. */
  #isUnlikely({ kind: { past }, streak, asked, isInDoubt }: Waiting): boolean {
    const ids = Math.max(streak.ids, asked > 0 ? 1 : 0); // one that was asked for again is not counted there
    if (ids <= this.#expected.mayBeGone) return false;
    const share = isInDoubt ? 1 : past && past / (past + this.#accepted);
    const goesOn = 1 - (1 - Math.min(unlikely.shareMax, share)) ** endsAfter; // a streak goes on over a single accepted request
    return goesOn ** ids < unlikely.below;
  }

  #isSuspicious({ kind, streak, from, to, asked }: Waiting): boolean {
    const beyond = (ids: number) => Math.max(0, ids - pairs);
    if (beyond(streak.ids) >= suspicious) return true;
    if (asked >= answersMax) return false;
    if (beyond(streak.ids + streak.again) >= suspicious) return true;
    if (kind.spells.cover({ from, to })) return true;
    const others = this.#othersOf(kind);
    return others.reduce((sum, { longest }) => sum + beyond(longest), beyond(streak.ids)) >= suspicious;
  }

  /** Whether the streaks of other processes are known, and requests that were sent earlier have been answered. */
  #hasNews(since: number): boolean {
    if (this.#isAlone) return this.#clock() >= since + Math.min(slowestMaxMs, this.#slowestMs);
    return this.#askedAt >= since + newsMs;
  }

  /** Whether no answer has been expected for a while, so that the streak won't continue. */
  #isIdleFor({ ids }: Streak): boolean {
    if (this.#idleSince === null) return false;
    return this.#clock() - this.#idleSince >= (ids < idle.long ? idle.shortMs : idle.longMs);
  }

  #noteIdle(): void {
    let expected = 0;
    for (const pass of this.#passes) expected += pass.expected;
    if (expected > this.#waiting.size) this.#idleSince = null;
    else this.#idleSince ??= this.#clock();
  }

  #isLong(kind: Kind): boolean {
    return kind.streak.ids > 0 && this.#inARow(kind) >= refusalsInARow;
  }

  #noteHold(): void {
    if (this.#hold !== null && (this.#hold.streak.isOver || !this.#isLong(this.#hold.kind))) this.#hold = null;
    const kind = this.#kinds.find((one) => this.#isLong(one));
    if (this.#hold === null && kind !== undefined) {
      const since = this.#clock();
      this.#hold = { kind, streak: kind.streak, since, refused: 0, isOther: false, nextAt: since + probeAfterMs };
      this.#tell(
        `${this.#inARow(kind)} ids in a row were refused (${kind.status}): one id is sent at a time, to see whether all are`,
      );
    }
    this.isHolding = this.#hold !== null;
  }
}
