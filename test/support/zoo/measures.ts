import type { Scenario } from './world.ts';

export type Result = {
  used: number;
  refused: number;
  /** Seconds from the last change until 90 % of the limit was used for some seconds, at most 5 % refused; infinite = never. */
  follow: number | null;
  /** Refused in the first 30 s. */
  firstRefusals: number;
  perSecond: number;
  /** Mean of the accepted answers; 0 = none. */
  latencyMs: number;
};

export const binMs = 100;

/** What a target let through, refused and could have let through, tenth by tenth of a second. */
export class Measures {
  readonly #scenario: Scenario;
  readonly #accepted: number[];
  readonly #refused: number[];
  readonly #possible: number[];
  readonly #latency = { count: 0, sumMs: 0 };

  constructor(scenario: Scenario) {
    this.#scenario = scenario;
    const bins = () => new Array<number>(Math.ceil((scenario.seconds * 1_000) / binMs)).fill(0);
    [this.#accepted, this.#refused, this.#possible] = [bins(), bins(), bins()];
  }

  add(now: number, status: number): void {
    const bins = status === 204 ? this.#accepted : this.#refused;
    bins[Math.floor(now / binMs)]!++;
  }

  addLatency(now: number, ms: number): void {
    if (now < this.#scenario.from * 1_000) return;
    this.#latency.count++;
    this.#latency.sumMs += ms;
  }

  /** Every tenth of a second: what could be had by us, a second, and what others got since the last time. */
  allow(now: number, perSecond: number, othersGot: number): void {
    const bin = Math.floor(now / binMs);
    const { possible } = this.#scenario;
    this.#possible[bin] = (possible ? possible(now) : perSecond) / 10;
    if (bin > 0 && !possible) this.#possible[bin - 1]! -= othersGot;
  }

  /** Let through and refused in the second before. */
  lastSecond(now: number): { accepted: number; refused: number } {
    const bin = Math.floor(now / binMs);
    return { accepted: sum(this.#accepted, bin - 10, bin), refused: sum(this.#refused, bin - 10, bin) };
  }

  result(): Result {
    const { seconds, from, changes } = this.#scenario;
    const a = sum(this.#accepted, from * 10, seconds * 10);
    const r = sum(this.#refused, from * 10, seconds * 10);
    return {
      used: a / sum(this.#possible, from * 10, seconds * 10),
      refused: r / Math.max(1, a + r),
      follow: changes ? (this.followed(seconds * 1_000) ?? Number.POSITIVE_INFINITY) : null,
      firstRefusals: sum(this.#refused, 0, Math.min(300, from * 10)),
      perSecond: a / (seconds - from),
      latencyMs: this.#latency.sumMs / Math.max(1, this.#latency.count),
    };
  }

  /** As of now; null = not yet. */
  followed(now: number): number | null {
    const [atS, limit] = this.#scenario.changes!.at(-1)!;
    const width = Math.round(Math.max(3, 30 / limit) * 10); // in tenths of a second
    for (let bin = atS * 10; bin + width <= Math.floor(now / binMs); bin++) {
      const a = sum(this.#accepted, bin, bin + width);
      const r = sum(this.#refused, bin, bin + width);
      const possible = sum(this.#possible, bin, bin + width);
      if (a >= 0.9 * possible && r <= 0.05 * (a + r)) return (bin + width) / 10 - atS;
    }
    return null;
  }
}

function sum(values: readonly number[], from: number, to: number): number {
  let total = 0;
  for (let at = Math.max(0, Math.round(from)); at < Math.min(values.length, Math.round(to)); at++) total += values[at]!;
  return total;
}
