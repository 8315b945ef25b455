import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { readAudit } from '../../../src/ledger/audit.ts';
import { headerBytes, isDoubtful, isSettled, settle } from '../../../src/ledger/cell.ts';
import { openLedger } from '../../../src/ledger/ledger.ts';
import { type Run, readRun } from '../../../src/ledger/run.ts';
import { recoverOrphans } from '../../../src/ledger/start-run.ts';
import { finalizeTally } from '../../../src/ledger/tally.ts';
import { codeOfStatus } from '../../../src/model/outcome.ts';
import { keys } from '../../../src/redis/keys.ts';
import { redisDuringTests } from '../../support/redis.ts';
import { claimChunk, forgetRun, readCells, writeTestRun } from './lone-run.ts';

let id: string;
const redis = await redisDuringTests();
const ledger = openLedger(redis);
beforeEach(async () => {
  id = await writeTestRun(redis, [2, 2, 1]);
  await steer('start');
  await ledger.enqueue(id);
});
afterEach(() => forgetRun(redis, id));

const deleted = settle('deleted', 1, codeOfStatus(204));

function steer(action: 'start' | 'cancel') {
  return ledger.steer(id, Date.now(), { action, reason: '', by: 'operator', who: 'test' });
}

const claim = (chunk = 0) => claimChunk(ledger, id, chunk);
const cells = (chunk = 0) => readCells(redis, id, chunk);

async function record(): Promise<Run> {
  return (await readRun(redis, id))!;
}

describe('chunks of which Redis has lost sight', () => {
  /** @invariant rebuilt-queue */
  test('are found in the ledger, and are due again in doubt', async () => {
    const { epoch } = await claim(0);
    await ledger.update({ run: id, chunk: 0, epoch, results: [{ index: 0, cell: deleted }, { index: 1, cell: deleted }] }); // biome-ignore format: one line
    await redis.del(keys.open(id), keys.deferred(id));
    expect(await recoverOrphans(ledger, id)).toBe(true);
    expect(await redis.zrange(keys.deferred(id), '0', '-1')).toEqual(['1', '2']);
    expect(await ledger.enqueue(id)).toEqual([1, 2]);
    expect((await claim(1)).ledgerChunk.cells.every(isDoubtful)).toBe(true);
    expect(await record()).toMatchObject({
      state: 'running',
      doubt: expect.stringContaining('which chunks were left'),
    });
    expect(await recoverOrphans(ledger, id)).toBe(false);
  });

  test('are due again where only some of their ids are settled, and do not halt the run', async () => {
    for (const chunk of [0, 1, 2])
      await ledger.update({
        run: id,
        chunk,
        epoch: (await claim(chunk)).epoch,
        results: [{ index: 0, cell: deleted }],
      });
    await redis.del(keys.open(id), keys.deferred(id));
    const scan = { ...ledger, hasOrphans: async () => true }; // also afterwards: what was found counts
    expect(await recoverOrphans(scan, id)).toBe(true);
    expect(await redis.zrange(keys.deferred(id), '0', '-1')).toEqual(['0', '1']);
    expect(await record()).toMatchObject({ state: 'running', halt: '' });
  });

  test('are due again also where their ledger is lost, so that the claim tells of it', async () => {
    await redis.del(keys.open(id), keys.deferred(id), keys.ledger(id, 1));
    expect(await recoverOrphans(ledger, id)).toBe(true);
    expect(await redis.zrange(keys.deferred(id), '0', '-1')).toEqual(['0', '1', '2']);
    expect(await ledger.enqueue(id)).toEqual([0, 1, 2]);
    expect(await ledger.claim(id, 1)).toBe('broken');
  });

  test('of a run that Redis has lost as well are none', async () => {
    await redis.del(keys.open(id), keys.deferred(id));
    const asked = { ...ledger, hasOrphans: async () => true };
    expect(await recoverOrphans(asked, `${id}-lost`)).toBe(false);
  });

  test('halt the run where its counters and its ledger disagree, so that it can be cancelled', async () => {
    const cellBytes = Buffer.from([deleted >> 8, deleted & 255]);
    for (const [chunk, size] of [2, 2, 1].entries()) {
      const { epoch } = await claim(chunk);
      const results = Array.from({ length: size }, (_, index) => ({ index, cell: deleted }));
      await ledger.update({ run: id, chunk, epoch, results: chunk < 2 ? results : [] });
      if (chunk === 2) await redis.setrange(keys.ledger(id, 2), headerBytes, cellBytes);
    }
    await redis.del(keys.open(id), keys.deferred(id));
    expect((await cells(2)).every(isSettled)).toBe(true);
    expect(await recoverOrphans(ledger, id)).toBe(true);
    expect(await record()).toMatchObject({ state: 'halted', halt: 'ledger_lost', by: 'guard' });
    const { action, by, who, reason, halt } = (await readAudit(redis, await record())).at(-1)!;
    expect([action, by, who, halt]).toEqual(['halt', 'guard', '', 'ledger_lost']);
    expect(reason).toMatch(/its ledger has none: bring its data back and resume, or cancel it$/);
    await steer('cancel');
    expect((await finalizeTally(redis, await record())).counts.deleted).toBe(5);
  });

  test('do not halt a run that another process has recovered meanwhile', async () => {
    await ledger.update({ run: id, chunk: 0, epoch: (await claim(0)).epoch, results: [{ index: 0, cell: deleted }, { index: 1, cell: deleted }] }); // biome-ignore format: one line
    await redis.del(keys.open(id), keys.deferred(id), keys.ledger(id, 1), keys.ledger(id, 2));
    await redis.hset(keys.run(id), 'chunks', 1); // all that this process sees is settled
    let asked = 0;
    const meanwhile = { ...ledger, hasOrphans: async () => asked++ === 0 };
    expect(await recoverOrphans(meanwhile, id)).toBe(true);
    expect(await record()).toMatchObject({ state: 'running', halt: '' });
  });

  test('are not looked for while any is open or waits', async () => {
    expect(await ledger.hasOrphans(id)).toBe(false);
    const { epoch } = await claim(0);
    await ledger.returnChunk({ run: id, chunk: 0, epoch, dueInMs: 60_000 });
    await redis.del(keys.open(id));
    expect(await ledger.hasOrphans(id)).toBe(false);
  });
});
