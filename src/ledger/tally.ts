import { count } from '../format.ts';
import {
  idOutcomes,
  isFailure,
  type OutcomeCounts,
  outcomes,
  perOutcome,
  type SentOutcome,
  sumOutcomes,
} from '../model/outcome.ts';
import { type RedisClient, readValues } from '../redis/client.ts';
import { keys } from '../redis/keys.ts';
import { type Cell, cellReader, decodeLedgerChunk, headerBytes, type IdState } from './cell.ts';
import { expireRun } from './end-run.ts';
import { decodeBlock, decodeChunk } from './manifest.ts';
import { isFinalized, type Run, readRunAgain } from './run.ts';

/** The number of ids that failed, or are unknown, for one reason. */
type BadCode = { outcome: SentOutcome; code: string; count: number };

/** The result of scanning a run's ledger. `broken` names chunks and blocks that are missing or have a wrong size. */
export type Tally = {
  counts: OutcomeCounts;
  pending: number;
  attempts: number;
  badCodes: BadCode[]; // most frequent first
  broken: string[];
};

const keysPerRead = 100;
const cellValues = 2 ** 16;

/** Counts every row of the run in the ledger, in bounded memory. In a finalized run, open cells read as when it was finalized. Only reads. */
export async function tallyLedger(redis: RedisClient, run: Run): Promise<Tally> {
  const tally = tallyCells(await countCells(redis, run), cellReader(run));
  await addBlocks(redis, run, tally);
  const rows = tally.pending + sumOutcomes(tally.counts);
  if (rows !== run.rows) tally.broken = await findBrokenChunks(redis, run);
  return tally;
}

/** Counts how often each value of a cell occurs in the ledger, with 65,536 counters, whatever the number of ids. */
async function countCells(redis: RedisClient, run: Run): Promise<Float64Array> {
  const found = new Float64Array(cellValues);
  for await (const chunks of readNumbered(redis, (n) => keys.ledger(run.id, n), run.chunks, keysPerRead)) {
    for (const { bytes } of chunks) {
      if (bytes === null || bytes.length < headerBytes || bytes.length % 2 === 1) continue;
      for (const cell of decodeLedgerChunk(bytes).cells) found[cell]! += 1;
    }
  }
  return found;
}

function tallyCells(found: Float64Array, readState: (cell: Cell) => IdState): Tally {
  const tally: Tally = { counts: perOutcome(() => 0), pending: 0, attempts: 0, badCodes: [], broken: [] };
  const bad = new Map<string, BadCode>();
  found.forEach((count, cell) => {
    if (count === 0) return;
    const { outcome, code, attempts } = readState(cell);
    tally.attempts += attempts * count;
    if (outcome === 'pending') tally.pending += count;
    else tally.counts[outcome] += count;
    if (!isFailure(outcome)) return;
    const before = bad.get(`${outcome} ${code}`)?.count ?? 0;
    bad.set(`${outcome} ${code}`, { outcome, code, count: before + count });
  });
  tally.badCodes = [...bad.values()].sort((a, b) => b.count - a.count);
  return tally;
}

async function addBlocks(redis: RedisClient, run: Run, { counts }: Tally): Promise<void> {
  for await (const blocks of readNumbered(redis, (n) => keys.settled(run.id, n), run.blocks, keysPerRead)) {
    for (const { n, bytes } of blocks) {
      for (const row of bytes === null ? [] : decodeBlock(n, bytes).rows) counts[row.outcome] += 1;
    }
  }
}

/**
 * Completes the counters of a finalized run: counts the outcomes of a cancelled run's open cells, and sets the expiry of all keys. It writes absolute
 * values of a ledger that no longer changes, so repeating it is harmless, even by two processes at once. With a broken ledger the counters stay as
 * they are. Returns the run as it is then; throws INTERNAL if Redis no longer has it.
 */
export async function finalizeTally(redis: RedisClient, run: Run): Promise<Run> {
  if (run.state === 'cancelled' && !run.tallied) await writeTally(redis, run);
  // Best effort: the next call repeats it, and a Redis that rejects writes can still be read.
  if (isFinalized(run.state) && !run.isExpiring) await expireRun(redis, run).catch(() => {});
  return readRunAgain(redis, run.id);
}

/** A finalized run with its final counters, as `finalizeTally` returns it; any other run unchanged. */
export async function tallyIfFinalized(redis: RedisClient, run: Run): Promise<Run> {
  return isFinalized(run.state) ? finalizeTally(redis, run) : run;
}

async function writeTally(redis: RedisClient, run: Run): Promise<void> {
  const { counts, broken } = await tallyLedger(redis, run);
  if (broken.length > 0) return;
  const ofIds = Object.fromEntries(idOutcomes.map((outcome) => [outcome, counts[outcome]]));
  await redis.hset(keys.run(run.id), { ...ofIds, tallied: 1 });
}

const manifestsPerRead = 16;
const namesMax = 10;

/** Names chunks and blocks that Redis has lost or cut, at most ten; empty if all are complete. */
async function findBrokenChunks(redis: RedisClient, run: Run): Promise<string[]> {
  const names: string[] = [];
  for await (const name of brokenNames(redis, run)) {
    names.push(name);
    if (names.length === namesMax) break;
  }
  return names;
}

async function* brokenNames(redis: RedisClient, run: Run): AsyncGenerator<string> {
  for await (const chunks of readNumbered(redis, (n) => keys.manifest(run.id, n), run.chunks, manifestsPerRead)) {
    const cells = await readValues(
      redis,
      chunks.map(({ n }) => keys.ledger(run.id, n)),
    );
    for (const [i, { n, bytes }] of chunks.entries()) yield* compare(n, bytes, cells[i]!);
  }
  for await (const blocks of readNumbered(redis, (n) => keys.settled(run.id, n), run.blocks, manifestsPerRead)) {
    for (const { n, bytes } of blocks) if (bytes === null) yield `block ${n} of settled rows is missing`;
  }
}

function* compare(n: number, manifest: Buffer | null, ledger: Buffer | null): Generator<string> {
  if (manifest === null) yield `manifest chunk ${n} is missing`;
  if (ledger === null) yield `ledger chunk ${n} is missing`;
  if (manifest === null || ledger === null) return;
  const ids = decodeChunk(n, manifest).ids.length;
  const expected = headerBytes + 2 * ids;
  if (ledger.length !== expected) {
    yield `ledger chunk ${n} has ${ledger.length} bytes instead of ${expected} for its ${ids} ids`;
  }
}

/**
 * Checks that nothing was lost: rows = Σ outcomes + pending, and the counters of the run equal the scan. Returns null, or a sentence about what does
 * not add up. Read `run` before the scan, because a run may continue during the scan. Pure.
 */
export function checkConservation(run: Run, tally: Tally): string | null {
  if (tally.broken.length > 0) return sentence(tally.broken);
  const rows = sumOutcomes(tally.counts) + tally.pending;
  if (rows !== run.rows) return sentence([`the list had ${count(run.rows)} rows, the ledger holds ${count(rows)}`]);
  const mismatches = hasFinalCounters(run) ? compareCounters(run, tally) : compareProgress(run, tally);
  return mismatches.length === 0 ? null : sentence(mismatches);
}

/** The sum in words: `12,345 rows = 12,000 deleted + 340 absent + 5 failed`. */
export function sumInWords(tally: Pick<Tally, 'counts' | 'pending'>): string {
  const parts = [...outcomes.map((outcome) => [tally.counts[outcome], outcome] as const), [tally.pending, 'pending']];
  const words = parts.filter(([n]) => n !== 0).map(([n, word]) => `${count(Number(n))} ${word}`);
  return `${count(sumOutcomes(tally.counts) + tally.pending)} rows = ${words.join(' + ') || '0'}`;
}

function hasFinalCounters(run: Run): boolean {
  return run.state === 'completed' || (run.state === 'cancelled' && run.tallied);
}

function compareCounters(run: Run, tally: Tally): string[] {
  const pairs: (readonly [string, number, number])[] = [
    ...outcomes.map((outcome) => [outcome, run.counts[outcome], tally.counts[outcome]] as const),
    ['attempts', run.attempts, tally.attempts],
  ];
  const unequal = pairs.filter(([, counted, found]) => counted !== found);
  return unequal.map(([word, counted, found]) => `${word}: ${count(counted)} counted, ${count(found)} in the ledger`);
}

/** A settled cell stays settled, so a later scan never finds fewer settled ids than were counted. */
function compareProgress(run: Run, tally: Tally): string[] {
  const pendingThen = run.ids - run.settled;
  if (run.state === 'cancelled' || tally.pending <= pendingThen) return [];
  return [`${count(pendingThen)} ids were pending, ${count(tally.pending)} are open in the ledger`];
}

function sentence(mismatches: string[]): string {
  return `does not add up: ${mismatches.join('; ')}`;
}

/** The value of one of a run's numbered keys; null if Redis has lost it. */
export type Numbered = { n: number; bytes: Buffer | null };

/** Reads the values of the keys 0 … count − 1, `size` of them per round trip and in memory. */
export async function* readNumbered(
  redis: RedisClient,
  keyOf: (n: number) => string,
  count: number,
  size: number,
): AsyncGenerator<Numbered[]> {
  for (let from = 0; from < count; from += size) {
    const numbers = Array.from({ length: Math.min(size, count - from) }, (_, i) => from + i);
    const values = await readValues(redis, numbers.map(keyOf));
    yield numbers.map((n, i) => ({ n, bytes: values[i]! }));
  }
}
