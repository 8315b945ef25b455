import { isFinalized } from '../../src/ledger/run.ts';
import type { RunAction, RunModel, TargetAction } from './action-walk-model.ts';

/** What is done next; several actions are taken at once. `looksBefore`: the people look at the run first, or else go by what they saw last. */
export type Step =
  | { kind: 'new'; who: string; reason: string; list: string }
  | { kind: 'run'; actions: readonly RunAction[]; looksBefore: boolean }
  | { kind: 'target'; actions: readonly TargetAction[] };

export const people = ['ana', 'bob', 'cho', 'dia', 'eli'] as const;

const liveMin = 6;
const liveMax = 12;
const doubleShare = 0.12;

/** Draws steps from a seed. */
export class ActionDraw {
  readonly #random: () => number;
  #count = 0;

  constructor(random: () => number) {
    this.#random = random;
  }

  below(n: number): number {
    return Math.floor(this.#random() * n);
  }

  pick<T>(all: readonly T[]): T {
    return all[this.below(all.length)]!;
  }

  is(share: number): boolean {
    return this.#random() < share;
  }

  shuffled<T>(all: readonly T[]): T[] {
    const left = [...all];
    return all.map(() => left.splice(this.below(left.length), 1)[0]!);
  }

  /** `newLists`: those that no run was made of yet. */
  next(runs: readonly RunModel[], [newList]: readonly string[]): Step {
    const live = runs.filter(({ state }) => !isFinalized(state));
    const dice = this.#random();
    if (newList !== undefined && (live.length < liveMin || (dice < 0.07 && live.length < liveMax)))
      return { kind: 'new', ...this.#by(), list: newList };
    if (dice < 0.12) return { kind: 'new', ...this.#by(), list: this.pick(runs).list };
    if (dice < 0.24) return this.#target();
    return this.#actOnRun(this.#choose(runs, live));
  }

  /** Mostly one that can still be steered, and often one that something has halted or left half done. */
  #choose(all: readonly RunModel[], live: readonly RunModel[]): RunModel {
    const odd = live.filter(({ state }) => state === 'halted' || state === 'preparing' || state === 'planned');
    if (odd.length > 0 && this.is(0.3)) return this.pick(odd);
    return live.length > 0 && this.is(0.85) ? this.pick(live) : this.pick(all);
  }

  #actOnRun(run: RunModel): Step {
    const looksBefore = this.is(0.6);
    const first = this.#runAction(run);
    if (!this.is(doubleShare)) return { kind: 'run', actions: [first], looksBefore };
    const second = this.is(0.5) ? first : this.#runAction(run);
    const actions = [first, second].map((action) => ({ ...action, way: 'api' as const }));
    return { kind: 'run', actions, looksBefore };
  }

  #runAction(run: RunModel): RunAction {
    const action = { ...this.#by(), run: run.id };
    const dice = this.#random();
    if (dice < (isFinalized(run.state) ? 0.4 : run.state === 'preparing' ? 0.15 : 0.02))
      return { ...action, command: 'remove' };
    if (dice < 0.45) return { ...action, command: 'pause' };
    if (dice < 0.78) return { ...action, command: 'resume', maxDeletes: this.#moreDeletes(run) };
    if (dice < 0.88) return { ...action, command: 'cancel' };
    return { ...action, command: 'rate', rate: `${15 + 5 * this.below(4)}/s` };
  }

  #moreDeletes({ state, maxDeletes }: RunModel): number | null {
    return state === 'halted' && maxDeletes !== null && this.is(0.8) ? maxDeletes + 20 + this.below(30) : null;
  }

  #target(): Step {
    const action: TargetAction = { ...this.#by(), command: this.is(0.4) ? 'stop-all' : 'start-all' };
    return {
      kind: 'target',
      actions: action.command === 'stop-all' && this.is(doubleShare) ? [action, action] : [action],
    };
  }

  /** Two in three actions have a reason of their own, by which their entries differ. */
  #by(): Pick<RunAction, 'who' | 'reason' | 'way'> {
    const reason = this.is(0.66) ? `action-${this.#count++}` : '';
    return { who: this.pick(people), reason, way: this.is(0.5) ? 'cli' : 'api' };
  }
}
