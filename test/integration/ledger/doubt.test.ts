import { once } from 'node:events';
import { describe, expect, onTestFinished, test } from 'vitest';
import { readAudit } from '../../../src/ledger/audit.ts';
import { decodeLedgerChunk, isDoubtful, readCell, settle, untouched } from '../../../src/ledger/cell.ts';
import { type Claim, type Ledger, noEpoch, openLedger } from '../../../src/ledger/ledger.ts';
import { type Run, readRun } from '../../../src/ledger/run.ts';
import { finalizeTally, tallyLedger } from '../../../src/ledger/tally.ts';
import { codeOfStatus } from '../../../src/model/outcome.ts';
import { addressFromUrl } from '../../../src/redis/address.ts';
import { keys } from '../../../src/redis/keys.ts';
import { aofBytes, truncateAof } from '../../support/aof.ts';
import { until } from '../../support/processes.ts';
import { openLedgerOn } from '../../support/redis.ts';
import { type RedisProcess, startRedisProcess } from '../../support/redis-process.ts';
import { writeTestRun } from './lone-run.ts';

let server: RedisProcess;
let ledger: Ledger;
let id: string;
let otherPort: number;

const absent = settle('absent', 1, codeOfStatus(404));
const deleted = settle('deleted', 1, codeOfStatus(204));

/** A run that is running, on a Redis of its own. */
async function open(sizes: number[], args: string[] = []): Promise<void> {
  server = await startRedisProcess(onTestFinished, { args: () => args });
  ledger = await openLedgerAt(server.port);
  id = await writeTestRun(ledger.redis, sizes);
  await steer('start');
  await ledger.enqueue(id);
}

async function openLedgerAt(port: number): Promise<Ledger> {
  const redis = await openLedgerOn(addressFromUrl(`redis://127.0.0.1:${port}`, true));
  onTestFinished(() => redis.disconnect());
  return openLedger(redis);
}

/** A run that is running, on a Redis of its own that has a replica. */
async function openPair(sizes: number[], args: string[] = []): Promise<{ other: Ledger }> {
  const both = ['--repl-diskless-sync-delay', '0', ...args];
  await open(sizes, both);
  const replica = await startRedisProcess(onTestFinished, {
    args: () => [...both, '--replicaof', '127.0.0.1', String(server.port)],
  });
  otherPort = replica.port;
  const other = await openLedgerAt(replica.port);
  await until('the replica has the run', async () => (await other.redis.exists(keys.open(id))) === 1);
  return { other };
}

/** The replica follows nobody any more. */
async function promote(other: Ledger): Promise<void> {
  await other.redis.call('REPLICAOF', 'NO', 'ONE');
}

/** The first Redis follows the other one, with what that has, and is promoted again; as Sentinel does it, with its clients cut off. */
async function takeBack(): Promise<void> {
  await ledger.redis.call('REPLICAOF', '127.0.0.1', String(otherPort));
  await until('it has what the other one has', async () =>
    (await ledger.redis.info('replication')).includes('master_link_status:up'),
  );
  await ledger.redis.call('REPLICAOF', 'NO', 'ONE');
  const isBack = once(ledger.redis, 'ready');
  await ledger.redis.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'no').catch(() => {}); // it may be cut off before its answer
  await isBack;
}

/** Redis dies and comes back, with all it had or as it was after so many bytes. */
async function restart(bytes?: number): Promise<void> {
  await truncateAof(server, bytes ?? (await writtenBytes()));
  await until('the ledger is connected', () => ledger.redis.status === 'ready');
}

/** Of the append-only file, with all that was answered: a busy disk lets it lag behind. */
async function writtenBytes(): Promise<number> {
  const isWritten = async () => (await ledger.redis.info('persistence')).includes('aof_buffer_length:0');
  await until('the file has all commands', isWritten);
  return aofBytes(server);
}

function steer(action: 'start' | 'cancel') {
  return ledger.steer(id, Date.now(), { action, reason: '', by: 'operator', who: 'test' });
}

async function claim(chunk = 0, by = ledger): Promise<Claim> {
  const claimed = await by.claim(id, chunk);
  if (typeof claimed === 'string') throw new Error(`there is nothing to claim: ${claimed}`);
  return claimed;
}

async function cells(chunk = 0): Promise<number[]> {
  return decodeLedgerChunk((await ledger.redis.getBuffer(keys.ledger(id, chunk)))!).cells;
}

async function record(): Promise<Run> {
  return (await readRun(ledger.redis, id))!;
}

describe('a Redis that was restarted', () => {
  /** @invariant no-false-absent: After a loss of data no id is falsely `absent`, and no epoch is used twice. */
  test('leaves every cell that is claimed from then on in doubt, and says so once', async () => {
    await open([2, 2]);
    expect((await claim(0)).doubt).toBe('');
    await restart();
    const first = await claim(0);
    expect(first.doubt).toMatch(/^Redis was restarted or replaced/);
    expect(first.ledgerChunk.cells.every(isDoubtful)).toBe(true);
    const second = await claim(1);
    expect(second.doubt).toBe('');
    expect(second.ledgerChunk.cells.every(isDoubtful)).toBe(true);
    expect(await cells(1)).toEqual(second.ledgerChunk.cells);
    const audit = await readAudit(ledger.redis, await record());
    expect(audit.filter(({ action }) => action === 'doubt')).toMatchObject([{ by: 'guard', reason: first.doubt }]);
    expect((await record()).doubtSince).toBeGreaterThan(0);
  });

  /** @invariant no-false-absent */
  test('hands out no epoch for the second time, though it has forgotten the first', async () => {
    await open([2]);
    const bytes = await writtenBytes();
    const before = await claim();
    await ledger.update({ run: id, chunk: 0, epoch: before.epoch, wanted: [0] });
    await restart(bytes);
    const after = await claim();
    expect(after.epoch).toBeGreaterThan(before.epoch);
    // The old holder is still alive. What it saw may be the doing of the new one.
    await ledger.update({ run: id, chunk: 0, epoch: before.epoch, results: [{ index: 0, cell: absent }], wanted: [1] });
    expect(readCell((await cells())[0]!)).toMatchObject({ outcome: 'gone_unconfirmed' });
    expect((await cells())[1]).toBe(after.ledgerChunk.cells[1]);
  });

  test('lets nobody go on with a chunk, because another holder may have had it since', async () => {
    await open([2]);
    const frozen = await claim();
    const bytes = await writtenBytes();
    const other = await openLedgerAt(server.port);
    const { epoch } = await claim(0, other);
    await other.update({ run: id, chunk: 0, epoch, wanted: [0, 1] }); // both are sent, and deleted
    expect(await ledger.stillHolds(id, frozen)).toBe(true);
    await restart(bytes);
    expect(await cells()).toEqual([untouched, untouched]); // of the other holder nothing is left
    expect(await ledger.redis.hget(keys.open(id), '0')).toBe(String(frozen.epoch));
    expect(await ledger.stillHolds(id, frozen)).toBe(false);
    const grant = await ledger.update({
      run: id,
      chunk: 0,
      epoch: noEpoch,
      results: [{ index: 0, cell: absent }],
      wanted: [1],
    });
    expect(grant).toMatchObject({ state: 'stale', cells: [] });
    expect(readCell((await cells())[0]!)).toMatchObject({ outcome: 'gone_unconfirmed' });
  });

  test('leaves no open id of a cancelled run as never sent', async () => {
    await open([2, 2]);
    const { epoch } = await claim();
    await ledger.update({ run: id, chunk: 0, epoch, results: [{ index: 0, cell: deleted }] });
    await ledger.returnChunk({ run: id, chunk: 0, epoch, dueInMs: 0 });
    await restart();
    expect(await steer('cancel')).toMatchObject({ before: 'running', after: 'cancelled' });
    const run = await finalizeTally(ledger.redis, await record());
    expect(run.counts).toMatchObject({ deleted: 1, unknown: 3, not_attempted: 0 });
    expect((await tallyLedger(ledger.redis, run)).counts).toEqual(run.counts);
  });

  test.each([
    ['appendfsync always', ['--appendfsync', 'always'], true],
    ['appendfsync everysec', ['--appendfsync', 'everysec'], false],
    ['always, but not during a rewrite', ['--appendfsync', 'always', '--no-appendfsync-on-rewrite', 'yes'], false],
  ])('is trusted where it had flushed what it acknowledged: %s', async (_, args, isTrusted) => {
    await open([2, 2], args);
    const before = await claim(0);
    await restart();
    expect(await ledger.stillHolds(id, before)).toBe(isTrusted);
    const { doubt, epoch, ledgerChunk } = await claim(1);
    expect(doubt === '').toBe(isTrusted);
    expect(ledgerChunk.cells.some(isDoubtful)).toBe(!isTrusted);
    expect(epoch === before.epoch + 1).toBe(isTrusted);
  });

  test('is not trusted where a replica took its place, though both flush always', async () => {
    await open([2], ['--appendfsync', 'always', '--repl-diskless-sync-delay', '0']);
    await claim();
    const replica = await startRedisProcess(onTestFinished, {
      args: () => ['--appendfsync', 'always', '--replicaof', '127.0.0.1', String(server.port)],
    });
    const other = await openLedgerAt(replica.port);
    await until('the replica has the run', async () => (await other.redis.exists(keys.open(id))) === 1);
    await other.redis.call('REPLICAOF', 'NO', 'ONE');
    expect((await claim(0, other)).doubt).not.toBe('');
  });
});

describe('a Redis that was the replica of another one for a while', () => {
  test('is not trusted, though it is the same process as before', async () => {
    const { other } = await openPair([2, 2]);
    const frozen = await claim(0);
    await promote(other);
    await ledger.update({ run: id, chunk: 0, epoch: frozen.epoch, wanted: [0, 1] }); // both are sent, and the other one never hears of it
    await takeBack();
    expect(await cells()).toEqual([untouched, untouched]);
    expect(await ledger.stillHolds(id, frozen)).toBe(false);
    const next = await claim(1);
    expect(next.doubt).toMatch(/^Redis was restarted or replaced/);
    expect(next.ledgerChunk.cells.every(isDoubtful)).toBe(true);
    expect(await ledger.stillHolds(id, next)).toBe(true);
    expect((await claim(0)).doubt).toBe('');
  });

  test('leaves no open id of a cancelled run as never sent', async () => {
    const { other } = await openPair([2]);
    await promote(other);
    await takeBack();
    await steer('cancel');
    const run = await finalizeTally(ledger.redis, await record());
    expect(run.counts).toMatchObject({ unknown: 2, not_attempted: 0 });
  });

  test('is trusted where it merely forgets that it was promoted once', async () => {
    const { other } = await openPair([2, 2], ['--repl-backlog-ttl', '1']);
    await promote(other);
    await takeBack();
    expect((await claim(0)).doubt).not.toBe('');
    await other.redis.call('REPLICAOF', 'NO', 'ONE');
    const isForgotten = async () => /master_replid2:0+\s/.test(await ledger.redis.info('replication'));
    await until('it has no replica for longer than it remembers', isForgotten);
    const { doubt, server } = await claim(1);
    expect([doubt, server.history]).toEqual(['', '']);
  });
});
