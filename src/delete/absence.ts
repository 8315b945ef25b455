import { absentInARow } from '../ledger/thresholds.ts';
import type { Streaks } from '../limiter/run-pace.ts';
import { statusesText } from '../model/status.ts';
import { visible } from '../model/visible.ts';
import { Spells } from './spells.ts';

/** The judgement on an id that the API says is not there. */
export type Belief =
  /** The id is absent. */
  | 'believed'
  /** Too many other ids were not there at the same time: ask for it again after `askAgainAfterMs`. */
  | 'ask again'
  /** The run has to halt; `haltReason` says why. */
  | 'halt'
  /** Sending is no longer allowed: the id stays open. */
  | 'ended';

const firstWaitMs = 3_000;
const laterWaitMs = { min: 2_000, max: 5_000 };

/**
 * The wait before an id is asked for again, by how often it was. `random` is from 0 to 1: it separates ids that were not there in a row, so that they
 * do not stay in a row for ever.
 */
export function askAgainAfterMs(asked: number, random: number): number {
  const { min, max } = laterWaitMs;
  return asked === 0 ? firstWaitMs : min + random * (max - min);
}

const endsAfter = 2; // deletions in a row: answers on many connections arrive slightly out of order
const pairs = 2; // ids of a streak that chance can explain, in each process
const suspicious = 8; // ids beyond these pairs, over all processes
const answersMax = 2; // answers for one id that a suspicious time can put in doubt; a long streak in this process always does
const fewest = 20; // ids that are not there when asked for twice, while nothing is deleted
const idle = { shortMs: 250, longMs: 2_000, long: 3 }; // long: the number of ids from which `longMs` applies
const newsMs = 1_000;
const reportedForMs = 2_000;

/**
 * Ids that were not there, one after another. `ids`: first answers; `again`: later answers, which come together because the ids were asked for
 * together; `deletions`: since the last of these answers.
 */
type Streak = { ids: number; again: number; deletions: number; hasBegun: boolean; isOver: boolean; examples: string[] };

const newStreak = (): Streak => ({ ids: 0, again: 0, deletions: 0, hasBegun: false, isOver: false, examples: [] });
const maxExamples = 3;

/**
 * An id that is not there. `asked`: how often expunge asked for it again. `before`: the number of `deletions` when it was last not there; null if
 * this is the first time. `isInDoubt`: an earlier request may have deleted it. `ms`: how long the answer took.
 */
export type Missing = { id: string; asked: number; before: number | null; isInDoubt: boolean; ms: number };

/** `isSecond`: it was not there before, and nothing was deleted since. The request was sent at `from`, and answered at `to`. */
type Waiting = {
  streak: Streak;
  from: number;
  to: number;
  asked: number;
  isSecond: boolean;
  resolve(belief: Belief): void;
};

/**
 * Decides when an `absent` is believed, with what one process knows of one run. During a deployment, or with a token of another account, an API
 * answers for every id that it is not there. Such ids come in a streak, in all processes. So each id that is not there waits until its streak is
 * over, or until no more answers are expected. After a short streak it is believed. In a long streak, or in a spell with more such ids than chance
 * explains, it is asked for again. If something was deleted in between, it is judged from scratch, because an API can be away twice. If nothing was,
 * the run halts, with these ids open.
 */
export class Absence {
  /** With --expect-absent every `absent` is believed at once. */
  isExpected = false;
  /** Answers so far that said an object was deleted. */
  deletions = 0;
  readonly #clock: () => number;
  readonly #isAlone: boolean;
  readonly #passes = new Set<{ readonly expected: number }>();
  readonly #waiting = new Set<Waiting>();
  readonly #spells = new Spells();
  #streak = newStreak();
  #longest = { ids: 0, at: 0 };
  #others: readonly Streaks[] = [];
  #askedAt = Number.NEGATIVE_INFINITY;
  #idleSince: number | null = null;

  /** `clock`: monotonic ms. `isAlone`: no other process sends requests of this run. */
  constructor(clock: () => number, isAlone: boolean) {
    this.#clock = clock;
    this.#isAlone = isAlone;
  }

  /** Adds a pass that expects answers. `expected`: how many, including ids that wait for a belief. */
  enter(pass: { readonly expected: number }): void {
    this.#passes.add(pass);
  }

  leave(pass: { readonly expected: number }): void {
    this.#passes.delete(pass);
  }

  /** Counts a deletion whose answer took `ms`. Called for nearly every answer, so it is cheap. */
  deleted(ms: number): void {
    this.deletions++;
    this.#spells.deleted(ms);
    if (!this.#streak.hasBegun || ++this.#streak.deletions < endsAfter) return;
    this.#streak.isOver = true;
    this.#streak = newStreak();
    this.#decide();
  }

  /** The streaks that other processes need to know; null = none. */
  get reported(): Streaks | null {
    const isFresh = this.#clock() - this.#longest.at <= reportedForMs;
    const longest = Math.max(this.#streak.ids, isFresh ? this.#longest.ids : 0);
    return longest > 1 ? { longest, lasting: this.#streak.ids } : null;
  }

  /** Takes over the streaks of other processes, as read from Redis at `askedAt`. Call it ten times a second: all waiting ends here. */
  hear(others: readonly Streaks[], askedAt: number): void {
    this.#others = others;
    this.#askedAt = askedAt;
    this.#decide();
  }

  /** Judges an id. An id in doubt counts for no streak, but it is believed only when the others are. */
  judge({ id, asked, before, isInDoubt, ms }: Missing, closed: AbortSignal): Promise<Belief> {
    if (this.isExpected) return Promise.resolve('believed');
    if (closed.aborted) return Promise.resolve('ended');
    const streak = this.#streak;
    streak.hasBegun = true;
    streak.deletions = 0;
    const isSecond = before !== null && this.deletions === before;
    const to = this.#clock();
    const from = to - ms;
    if (before === null && !isInDoubt) {
      this.#grow(streak, id);
      this.#spells.absent({ from, to });
    } else if (!isSecond && !isInDoubt) streak.again++;
    return new Promise((resolve) => {
      const end = () => waiting.resolve('ended');
      const waiting: Waiting = {
        streak,
        from,
        to,
        asked,
        isSecond,
        resolve: (belief) => {
          this.#waiting.delete(waiting);
          closed.removeEventListener('abort', end);
          resolve(belief);
        },
      };
      this.#waiting.add(waiting);
      closed.addEventListener('abort', end, { once: true });
      this.#decide();
    });
  }

  get haltReason(): string {
    const such = this.#streak.examples.map(visible).join(', ');
    return (
      `${this.#sum} ids in a row were not there (${statusesText('gone')}) while nothing was deleted, such as ${such}; they stay open. ` +
      'Check --base-url, --resource, the account of the token, and whether the API was being deployed; ' +
      'if the ids are expected to be gone, resume with --expect-absent'
    );
  }

  #grow(streak: Streak, id: string): void {
    streak.ids++;
    if (streak.examples.length < maxExamples) streak.examples.push(id);
    const now = this.#clock();
    if (streak.ids >= this.#longest.ids || now - this.#longest.at > reportedForMs)
      this.#longest = { ids: streak.ids, at: now };
  }

  /** The number of ids in the streaks that have not ended, over all processes. */
  get #sum(): number {
    return this.#others.reduce((sum, { lasting }) => sum + lasting, this.#streak.ids);
  }

  #decide(): void {
    this.#noteIdle();
    for (const waiting of [...this.#waiting]) {
      const belief = this.#beliefFor(waiting);
      if (belief !== null) waiting.resolve(belief);
    }
  }

  /** Null: not decided yet. */
  #beliefFor(waiting: Waiting): Belief | null {
    const { streak, isSecond } = waiting;
    if (this.isExpected) return 'believed';
    if (!streak.isOver && this.#sum >= absentInARow) return 'halt';
    if (!isSecond && this.#isSuspicious(waiting)) return 'ask again';
    if (!streak.isOver && !this.#isIdleFor(streak)) return null;
    if (!this.#hasNews(waiting.to)) return null;
    return isSecond && !streak.isOver && this.#sum >= fewest ? 'halt' : 'believed';
  }

  #isSuspicious({ streak, from, to, asked }: Waiting): boolean {
    const beyond = (ids: number) => Math.max(0, ids - pairs);
    if (beyond(streak.ids) >= suspicious) return true;
    if (asked >= answersMax) return false;
    if (beyond(streak.ids + streak.again) >= suspicious) return true;
    if (this.#spells.cover({ from, to })) return true;
    return this.#others.reduce((sum, { longest }) => sum + beyond(longest), beyond(streak.ids)) >= suspicious;
  }

  /** Whether the streaks of other processes are known, and requests that were sent earlier have been answered. */
  #hasNews(since: number): boolean {
    if (this.#isAlone) return this.#clock() >= since + this.#spells.slowestMs;
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
}
