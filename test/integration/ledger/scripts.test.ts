import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  type Cell,
  type CellResult,
  countAttempts,
  decodeLedgerChunk,
  isDoubtful,
  isSettled,
  settle,
  unmark,
} from '../../../src/ledger/cell.ts';
import type { KnownCells } from '../../../src/ledger/known-cells.ts';
import { type Claim, openLedger } from '../../../src/ledger/ledger.ts';
import { readRun } from '../../../src/ledger/run.ts';
import { codeOfStatus, sentOutcomes } from '../../../src/model/outcome.ts';
import { keys } from '../../../src/redis/keys.ts';
import { redisDuringTests } from '../../support/redis.ts';
import { RunModel } from '../../support/run-model.ts';
import { sized } from '../../support/size.ts';
import { forgetRun, writeTestRun } from './lone-run.ts';

let now = 1_000_000;
const redis = await redisDuringTests();
const ledger = openLedger(redis, () => now);

const sizes = [4, 1, 5, 2, 1, 3, 1, 2];
const index = fc.nat(4);
const chunk = fc.nat(7);

/** A result as a holder sends it: a definite outcome, or an open cell put back. `holds` cells the holder saw when it marked. */
const result = fc.oneof(
  fc.record({
    kind: fc.constant('settle' as const),
    outcome: fc.constantFrom(...sentOutcomes),
    status: fc.constantFrom(200, 204, 302, 403, 404, 503),
  }),
  fc.record({ kind: fc.constant('back' as const), sent: fc.nat(2), ambiguous: fc.boolean() }),
);
const op = fc.oneof(
  { weight: 2, arbitrary: fc.record({ op: fc.constant('enqueue' as const) }) },
  { weight: 3, arbitrary: fc.record({ op: fc.constant('claim' as const), chunk }) },
  {
    weight: 8,
    arbitrary: fc.record({
      op: fc.constant('update' as const),
      holder: fc.nat(3), // 0 is the last claim, 1 the one before …
      results: fc.array(fc.tuple(index, result), { maxLength: 4 }),
      wanted: fc.uniqueArray(index, { maxLength: 5 }),
      twice: fc.boolean(),
      knows: fc.boolean(), // whether the holder uses what it knows of the cells
      isLast: fc.boolean(), // whether it needs the chunk no more
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      op: fc.constant('returnChunk' as const),
      holder: fc.nat(3),
      waitMs: fc.constantFrom(null, 0, 500),
      isRetry: fc.boolean(),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      op: fc.constant('steer' as const),
      action: fc.constantFrom('start' as const, 'start' as const, 'pause' as const, 'halt' as const, 'cancel' as const),
    }),
  },
  { weight: 1, arbitrary: fc.record({ op: fc.constant('reclaim' as const) }) },
  { weight: 2, arbitrary: fc.record({ op: fc.constant('wait' as const), ms: fc.constantFrom(100, 600) }) },
);
type Op = typeof op extends fc.Arbitrary<infer T> ? T : never;
type Holder = { chunk: number; epoch: number; seen: Cell[]; known?: KnownCells };

/** @invariant scripts-follow-model: The scripts do what the model in TypeScript does. */
test('do what the model says, in any order of enqueuing, claiming, updating, returning and steering', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(op, { minLength: 20, maxLength: 80, size: 'max' }), async (ops) => {
      const id = await writeTestRun(redis, sizes);
      const play = new Play(id);
      try {
        await play.do({ op: 'steer', action: 'start' });
        for (const next of ops) await play.do(next);
        await play.compare();
      } finally {
        await forgetRun(redis, id);
      }
    }),
    { numRuns: sized(15, 150) },
  );
});

/** The same operations on Redis and on the model. */
class Play {
  readonly #id: string;
  readonly #model = new RunModel(sizes);
  readonly #holders: Holder[] = [];

  constructor(id: string) {
    this.#id = id;
  }

  async do(next: Op): Promise<void> {
    const id = this.#id;
    switch (next.op) {
      case 'wait':
        now += next.ms;
        return;
      case 'enqueue':
        expect(await ledger.enqueue(id)).toEqual(this.#model.enqueue(now));
        return;
      case 'claim':
        return this.#claim(next.chunk);
      case 'update':
        return this.#update(next);
      case 'returnChunk': {
        const { chunk = 0, epoch = 77 } = this.#holders.at(-1 - next.holder) ?? {};
        const dueAt = next.waitMs === null ? null : now + next.waitMs;
        const state = await ledger.returnChunk({ run: id, chunk, epoch, dueInMs: next.waitMs, isRetry: next.isRetry });
        expect(state).toBe(this.#model.returnChunk({ chunk, epoch, dueAt, isRetry: next.isRetry }));
        return;
      }
      case 'steer': {
        const steering = { action: next.action, reason: '', by: 'operator', who: 'test' } as const;
        const [before, after] = this.#model.steer(next.action, now);
        expect(await ledger.steer(id, now, steering)).toMatchObject({ before, after });
        return;
      }
      case 'reclaim':
        await redis.hset(keys.run(id), 'changedAt', 0); // long ago
        expect(await ledger.reclaim(id)).toBe(this.#model.reclaim(now));
        return;
    }
  }

  async #claim(chunk: number): Promise<void> {
    const claim = await ledger.claim(this.#id, chunk);
    const [epoch, enqueued] = this.#model.claim(chunk, now);
    if (epoch === 0) return expect(claim).toBe(this.#model.state);
    expect(claim).toMatchObject({ epoch, enqueued, ledgerChunk: { cells: this.#model.cells[chunk] } });
    const { known } = claim as Claim;
    this.#holders.push({ chunk, epoch, seen: [...this.#model.cells[chunk]!], known });
  }

  async #update({ holder, results, wanted, twice, knows, isLast }: Extract<Op, { op: 'update' }>): Promise<void> {
    const lost: Holder = { chunk: 0, epoch: 77, seen: [0] };
    const { chunk, epoch, seen, known } = this.#holders.at(-1 - holder) ?? lost;
    const size = sizes[chunk]!;
    const merged: CellResult[] = results
      .filter(([i]) => i < size && seen[i] !== undefined)
      .map(([i, of]) => ({ index: i, cell: cellOf(seen[i]!, of) }));
    const marks = isLast ? [] : wanted.filter((i) => i < size);
    for (let n = twice ? 2 : 1; n > 0; n--) {
      const grant = await ledger.update({
        run: this.#id,
        chunk,
        epoch,
        results: merged,
        wanted: marks,
        known: knows ? known : undefined,
        isLast,
      });
      const holds = this.#model.open.get(chunk) === epoch;
      const cells = this.#model.update(chunk, epoch, merged, marks);
      expect(grant).toMatchObject({ state: holds ? this.#model.state : 'stale', cells });
      if (grant.isReturned) {
        expect(this.#model.cells[chunk]!.every(isSettled)).toBe(true);
        this.#model.returnChunk({ chunk, epoch, dueAt: null });
      }
      for (const [at, i] of marks.entries()) if (cells[at] !== undefined) seen[i] = cells[at];
    }
  }

  async compare(): Promise<void> {
    const run = (await readRun(redis, this.#id))!;
    const { state, next, settled, counts, attempts, late } = this.#model;
    expect(run).toMatchObject({ state, next, settled, attempts, late, counts });
    expect(await redis.hgetall(keys.open(this.#id))).toEqual(textOf(this.#model.open));
    const deferred = await redis.zrange(keys.deferred(this.#id), '0', '-1', 'WITHSCORES');
    const dueAt = new Map(
      deferred.flatMap((chunk, i) => (i % 2 === 0 ? [[Number(chunk), Number(deferred[i + 1])]] : [])) as [
        number,
        number,
      ][],
    );
    expect([...dueAt.keys()].sort()).toEqual([...this.#model.deferred.keys()].sort());
    if (state !== 'cancelling' && state !== 'cancelled') expect(dueAt).toEqual(this.#model.deferred); // what a cancelled run had in hand is due by the clock of Redis
    for (const n of sizes.keys()) {
      const bytes = await redis.getBuffer(keys.ledger(this.#id, n));
      expect(decodeLedgerChunk(bytes!).cells).toEqual(this.#model.cells[n]);
    }
  }
}

/** What a holder that saw `seen` when it marked makes of a result. One that knew of doubt says neither absent nor failed. */
function cellOf(seen: Cell, of: typeof result extends fc.Arbitrary<infer T> ? T : never): Cell {
  if (of.kind === 'back') return unmark(seen & 0x1fff, (seen & 15) + of.sent, of.ambiguous);
  const careful = isDoubtful(seen & 0x1fff) && (of.outcome === 'failed' || of.outcome === 'absent');
  return settle(careful ? 'unknown' : of.outcome, countAttempts(seen) + 1, codeOfStatus(of.status));
}

function textOf(open: Map<number, number>): Record<string, string> {
  return Object.fromEntries([...open].map(([chunk, epoch]) => [String(chunk), String(epoch)]));
}
