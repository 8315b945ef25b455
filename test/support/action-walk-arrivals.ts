import type { Sandbox } from '../../src/sandbox/server.ts';

/** A time in which nothing of a list may arrive, by `performance.now()`. */
type Ban = { list: string; why: string; from: number; until: number };

/** How long after an action was confirmed requests may still arrive: a second, and the time that a busy machine takes to send and to note them. */
const graceMs = 3_000;

/** Compares what arrives at the API with what was forbidden when it arrived. */
export class ArrivalWatch {
  readonly #sandbox: Sandbox;
  readonly #bans: Ban[] = [];
  readonly #open = new Map<string, Ban>();
  readonly #arrivals: ReadonlyMap<string, { id: string; at: number }[]>;
  #read = 0;

  constructor(sandbox: Sandbox, lists: ReadonlyMap<string, unknown>) {
    this.#sandbox = sandbox;
    this.#arrivals = new Map([...lists.keys()].map((list) => [list, []]));
  }

  /** From now on only these lists are forbidden. `from`: when the action was given that lifted the others; `at`: when it was confirmed. */
  forbid(lists: ReadonlyMap<string, string>, from: number, at: number): void {
    for (const [list, ban] of this.#open) {
      if (lists.has(list)) continue;
      ban.until = from;
      this.#open.delete(list);
    }
    for (const [list, why] of lists) {
      if (this.#open.has(list)) continue;
      const ban = { list, why, from: at, until: Number.POSITIVE_INFINITY };
      this.#open.set(list, ban);
      this.#bans.push(ban);
    }
  }

  /** How many ids of a list have arrived. */
  sent(list: string): number {
    return new Set(this.#of(list).map(({ id }) => id)).size;
  }

  /** The first request that was forbidden. */
  findForbidden() {
    for (const ban of this.#bans) {
      const sent = this.#of(ban.list).find(({ at }) => at > ban.from + graceMs && at < ban.until);
      if (sent !== undefined) return { ...ban, id: sent.id, afterMs: sent.at - ban.from };
    }
    return null;
  }

  get words(): string {
    const watched = this.#bans.filter(({ from, until }) => Math.min(until, performance.now()) > from + graceMs);
    const late = this.#bans.flatMap(({ list, from, until }) =>
      this.#of(list).flatMap(({ at }) => (at > from && at < until ? [at - from] : [])),
    );
    const latest = Math.round(Math.max(0, ...late));
    return `${this.#sandbox.seen.length} requests, ${watched.length} holds watched, the latest request ${latest} ms after one began`;
  }

  /** What has arrived of a list. */
  #of(list: string) {
    const { seen, arrivals } = this.#sandbox;
    for (; this.#read < seen.length; this.#read++) {
      const [, id = '', of = ''] = /((w\d+)-[^/]+)$/.exec(seen[this.#read]!) ?? [];
      const all = this.#arrivals.get(of);
      if (all === undefined) throw new Error(`nobody asked for ${seen[this.#read]}`);
      all.push({ id, at: arrivals.atMs[this.#read]! });
    }
    return this.#arrivals.get(list)!;
  }
}
