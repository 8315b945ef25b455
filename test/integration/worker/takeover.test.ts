import { expect, test } from 'vitest';
import { openLedger } from '../../../src/ledger/ledger.ts';
import { startTarget, stopTarget } from '../../../src/ledger/steer-target.ts';
import type { Log } from '../../../src/logger.ts';
import { keys } from '../../../src/redis/keys.ts';
import { annotations, makeIds } from '../../support/ids.ts';
import { openLocalWorkers } from '../../support/local-workers.ts';
import { until } from '../../support/processes.ts';
import { claimChunk } from '../ledger/lone-run.ts';

const takenOver = 'took over a chunk that another process has not returned';

test('a chunk that is taken over is logged, with what is known of its former holder, and counted', async ({
  onTestFinished,
}) => {
  const told: object[] = [];
  const log: Log = {
    debug() {},
    info() {},
    error() {},
    warn: (facts, message) => void told.push({ ...facts, message }),
  };
  const ids = makeIds('t', 3);
  const workers = await openLocalWorkers(onTestFinished, { objects: annotations(ids) }, { log });
  const { redis, fp, service, submit, run } = workers;
  const ana = () => ({ who: 'ana', reason: '', at: Date.now() });
  await stopTarget(redis, fp, ana());
  await until('the worker takes no jobs', () => service.sender.stop !== null);
  const id = await submit(ids);
  const ledger = openLedger(redis);
  // By a process that then dies. The worker may return the chunk first, if it was waiting for a job at the time of the stop.
  const { epoch } = await until('the chunk is claimed', () => claimChunk(ledger, id, 0).catch(() => null));
  await ledger.update({ run: id, chunk: 0, epoch, wanted: [0] });
  const said = JSON.stringify({ stop: null, token: null, run: '', restMs: 1_000 });
  await redis.hset(keys.processes(fp), 'node-7-dead', `${Date.now() - 10_000} ${said}`);
  await startTarget(redis, fp, ana());
  await until('the run has ended', async () => (await run(id)).state === 'completed');
  const facts = { run: id, chunk: 0, ids: 3, inFlight: 1, from: ['node-7-dead'], message: takenOver };
  await until('the takeover is logged', () => told.some((line) => JSON.stringify(line).includes(takenOver)));
  expect(told).toContainEqual(facts);
  expect(service.takeovers).toBe(1);
});

test('a chunk that was returned before is not counted', async ({ onTestFinished }) => {
  const ids = makeIds('t', 3);
  const { service, submit, run } = await openLocalWorkers(onTestFinished, { objects: annotations(ids) });
  const id = await submit(ids);
  await until('the run has ended', async () => (await run(id)).state === 'completed');
  expect(service.takeovers).toBe(0);
});
