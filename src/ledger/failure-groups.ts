import type { Outcome } from '../model/outcome.ts';
import type { OutcomeRow } from './outcome-row.ts';

const grouped = ['failed', 'unknown', 'not_attempted', 'rejected'] as const satisfies readonly Outcome[];
type Grouped = (typeof grouped)[number];

/** Rows that ended in the same way for the same reason, and the first few of their ids. */
export type FailureGroup = { outcome: Grouped; code: string; count: number; samples: string[] };

const samplesMax = 3;

/** Groups rows that need somebody's attention while they pass by. Memory is bounded by the number of reasons. */
export class FailureGroups {
  readonly #groups = new Map<string, FailureGroup>();

  add({ outcome, code, id }: OutcomeRow): void {
    if (!isGrouped(outcome)) return;
    const key = `${outcome} ${code}`;
    const group = this.#groups.get(key) ?? { outcome, code, count: 0, samples: [] };
    group.count += 1;
    if (group.samples.length < samplesMax) group.samples.push(id);
    this.#groups.set(key, group);
  }

  /** By outcome, the largest group first. */
  list(): FailureGroup[] {
    const rank = ({ outcome }: FailureGroup) => grouped.indexOf(outcome);
    return [...this.#groups.values()].sort((a, b) => rank(a) - rank(b) || b.count - a.count);
  }
}

function isGrouped(outcome: OutcomeRow['outcome']): outcome is Grouped {
  return (grouped as readonly string[]).includes(outcome);
}
