import { randomUUID } from 'node:crypto';
import { decodeLedgerChunk } from '../../../src/ledger/cell.ts';
import { type RunPlan, writeRun } from '../../../src/ledger/create-run.ts';
import { unlinkRun } from '../../../src/ledger/end-run.ts';
import type { Claim, Ledger } from '../../../src/ledger/ledger.ts';
import { readRun } from '../../../src/ledger/run.ts';
import { noRules } from '../../../src/ledger/run-rules.ts';
import { type Target, targetOf } from '../../../src/model/target.ts';
import type { RedisClient } from '../../../src/redis/client.ts';
import { keys } from '../../../src/redis/keys.ts';

/** A planned run with `sizes.length` chunks, in Redis only, of a target of its own if none is given. Remove it with `forgetRun`. */
export async function writeTestRun(
  redis: RedisClient,
  sizes: number[],
  perSecond: number | null = null,
  target: Target | null = null,
  brakes: Partial<Pick<RunPlan, 'canary' | 'maxFailures' | 'maxDeletes' | 'graceMs' | 'startAt'>> = {},
): Promise<string> {
  const id = `test-${randomUUID()}`;
  const ids = sizes.reduce((sum, size) => sum + size, 0);
  const plan: RunPlan = {
    target: target ?? targetOf('http://127.0.0.1:9', id),
    list: id,
    sha256: id,
    files: ['list'],
    layout: '',
    rows: ids,
    ids,
    chunks: sizes.length,
    blocks: 0,
    settled: { rejected: 0, duplicate: 0, protected: 0 },
    protectedRead: null,
    ...noRules,
    rate: perSecond === null ? null : [{ count: perSecond, perMs: 1_000 }],
    canary: '',
    definitions: '',
    ...brakes,
    note: '',
    retryOf: '',
    keepMs: 60_000,
    detached: target !== null,
    who: 'test',
    command: '',
  };
  let line = 0;
  const chunks = sizes.map((size, n) => ({
    n,
    resource: 'views' as const,
    ids: Array.from({ length: size }, (_, i) => `v-${n}-${i}`),
    positions: Array.from({ length: size }, () => ({ file: 0, line: ++line })),
  }));
  await writeRun(redis, id, plan, chunks, Date.now(), () => {});
  return id;
}

export async function forgetRun(redis: RedisClient, id: string): Promise<void> {
  const run = await readRun(redis, id);
  if (run !== null) await unlinkRun(redis, run);
}

/** Claims a chunk that must be there to claim. */
export async function claimChunk(ledger: Ledger, id: string, chunk: number): Promise<Claim> {
  const claimed = await ledger.claim(id, chunk);
  if (typeof claimed === 'string') throw new Error(`there is nothing to claim: ${claimed}`);
  return claimed;
}

/** The cells of a chunk as Redis has them. */
export async function readCells(redis: RedisClient, id: string, chunk: number): Promise<number[]> {
  return decodeLedgerChunk((await redis.getBuffer(keys.ledger(id, chunk)))!).cells;
}
