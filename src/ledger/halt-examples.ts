import { isFailure, type Outcome, sentOutcomes } from '../model/outcome.ts';
import { visibleId } from '../model/visible.ts';
import { type RedisClient, readValues } from '../redis/client.ts';
import { keys } from '../redis/keys.ts';
import { decodeLedgerChunk, type IdState, readCell } from './cell.ts';
import { isUnexpected } from './halt-rules.ts';
import { decodeIdsOfChunk } from './manifest.ts';
import type { HaltCode, Run } from './run.ts';
import { unexpected } from './thresholds.ts';

/** An id that shows why a run halted. `excerpt`: the server's answer, '' if none was kept. */
export type HaltExample = { id: string; outcome: Outcome | 'pending'; code: string; excerpt: string };

const examplesMax = 5;
const chunksRead = 20;

/** Limits set by an operator that count ids that failed for any reason. */
const byFailures: ReadonlySet<HaltCode> = new Set<HaltCode>(['max_failures', 'canary']);

/**
 * Reads a few of the ids that halted a run, at most five, in the order of its list: from the 20 chunks that were enqueued last, then from its first
 * 20 chunks. Returns none for a run that is not halted, and skips chunks that Redis has lost.
 */
export async function haltExamples(redis: RedisClient, run: Run): Promise<HaltExample[]> {
  const isBehind = chooseBehind(run);
  if (isBehind === null) return [];
  const last = Math.max(0, run.next - chunksRead);
  const chunks = [...numbersFrom(last, run.next), ...numbersFrom(0, Math.min(last, chunksRead))];
  const examples: HaltExample[] = [];
  for (const n of chunks) {
    if (examples.length >= examplesMax) break;
    examples.push(...(await examplesIn(redis, run, n, isBehind)));
  }
  return examples.slice(0, examplesMax);
}

/** The outcomes that halted a run, as `report --only` takes them; '' if there are none, or if the run is not halted. */
export function haltSelection(run: Run): string {
  const isBehind = chooseBehind(run);
  if (isBehind === null) return '';
  return sentOutcomes.filter((outcome) => run.counts[outcome] > 0 && isFailure(outcome)).join(',');
}

/** One line for people: `a-17: failed, http_403 "no right to delete"`. */
export function haltExampleText({ id, outcome, code, excerpt }: HaltExample): string {
  return `${visibleId(id)}: ${outcome}, ${code}${excerpt === '' ? '' : ` "${excerpt}"`}`;
}

/** Whether an id contributed to the halt of a run; null if no settled id can have. */
function chooseBehind(run: Run): ((state: IdState) => boolean) | null {
  if (run.state !== 'halted' || run.halt === '') return null;
  if (byFailures.has(run.halt)) return ({ outcome }) => isFailure(outcome);
  return run.halt === unexpected.halt ? isUnexpected : null;
}

function numbersFrom(from: number, end: number): number[] {
  return Array.from({ length: Math.max(0, end - from) }, (_, i) => from + i);
}

async function examplesIn(
  redis: RedisClient,
  { id: run }: Run,
  n: number,
  isBehind: (state: IdState) => boolean,
): Promise<HaltExample[]> {
  const [bytes, manifest] = await readValues(redis, [keys.ledger(run, n), keys.manifest(run, n)]);
  if (!bytes || !manifest) return [];
  const { cells } = decodeLedgerChunk(bytes);
  const found = [...cells.keys()].filter((index) => isBehind(readCell(cells[index]!))).slice(0, examplesMax);
  if (found.length === 0) return [];
  const ids = decodeIdsOfChunk(n, manifest, cells.length);
  const excerpts = await redis.hmget(keys.details(run), ...found.map((index) => `${n}.${index}`));
  return found.map((index, at) => {
    const { outcome, code } = readCell(cells[index]!);
    return { id: ids.idAt(index), outcome, code, excerpt: excerpts[at] ?? '' };
  });
}
