import type { MeasureChanges } from '../ledger/measures.ts';
import type { Answer } from './answer.ts';

/** Counts what this process sees of one run, until the sums are taken to be added to those of the others. */
export class RunMeter {
  #requests = 0;
  #refused = 0;
  readonly #latencies: number[] = [];
  #changes: MeasureChanges = new Map();

  /** Called for each request: cheap. `bucket`: of how long the answer took. */
  answered(answer: Answer, bucket: number): void {
    this.#requests++;
    if (answer.kind !== 'status') return;
    if (answer.status === 429) this.#refused++;
    this.#latencies[bucket] = (this.#latencies[bucket] ?? 0) + 1;
  }

  add(field: 'refreshes' | 'workMs' | 'heldMs' | 'allowed' | 'limitedMs', by: number): void {
    this.#changes.set(field, (this.#changes.get(field) ?? 0) + by);
  }

  /** The changes since the last time. */
  take(): MeasureChanges {
    const changes = this.#changes;
    if (this.#requests > 0) changes.set('requests', this.#requests);
    if (this.#refused > 0) changes.set('refused', this.#refused);
    this.#latencies.forEach((n, bucket) => {
      changes.set(`l${bucket}`, n);
    });
    this.#changes = new Map();
    this.#latencies.length = 0;
    this.#requests = 0;
    this.#refused = 0;
    return changes;
  }
}
