import type { RedisClient } from '../redis/client.ts';
import { keys } from '../redis/keys.ts';
import { readValues } from '../redis/read-values.ts';
import { fateOf } from './cell.ts';
import { decodeLedgerChunk } from './cells.ts';
import { counts, type HaltRule } from './halt-rules.ts';
import { decodeIdsOfChunk } from './manifest.ts';
import type { Run } from './run.ts';

const shown = 5;
const chunksRead = 20;

/** The first few ids whose answers a rule counts, from the first chunks of a run; none where Redis has lost them. */
export async function haltExamples(redis: RedisClient, run: Run, rules: readonly HaltRule[]): Promise<string[]> {
  const rule = rules.find(({ halt }) => halt === run.halt);
  const examples: string[] = [];
  const end = rule === undefined || run.state !== 'halted' ? 0 : Math.min(run.next, chunksRead);
  for (let n = 0; n < end && examples.length < shown; n++) examples.push(...(await examplesIn(redis, run, n, rule!)));
  return examples.slice(0, shown);
}

async function examplesIn(redis: RedisClient, { id }: Run, n: number, rule: HaltRule): Promise<string[]> {
  const [bytes, manifest] = await readValues(redis, [keys.ledger(id, n), keys.manifest(id, n)]);
  if (!bytes || !manifest) return [];
  const { cells } = decodeLedgerChunk(bytes);
  const found = [...cells.keys()].filter((index) => counts(rule, fateOf(cells[index]!))).slice(0, shown);
  const ids = decodeIdsOfChunk(n, manifest, cells.length);
  return found.map((index) => ids.idAt(index));
}
