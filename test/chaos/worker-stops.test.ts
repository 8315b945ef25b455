import { describe, test } from 'vitest';
import { isDoubtful, isSettled } from '../../src/ledger/cell.ts';
import { type Harness, openHarness } from '../support/harness.ts';
import { annotations, makeIds } from '../support/ids.ts';
import { openOwnRedis } from '../support/own-redis.ts';
import { type Running, until } from '../support/processes.ts';
import { promised } from '../support/size.ts';

const ids = makeIds('w', 2_000);
const objects = annotations(ids);
const promisedMs = promised(12_000);

/** Tells a worker to end; returns how long that took it. */
async function stop(worker: Running, expected: number | null = 0): Promise<number> {
  const at = performance.now();
  worker.signal('SIGTERM');
  const { code } = await worker.ended;
  if (code !== expected) throw new Error(`it ended with ${code}: ${worker.stderr}`);
  return performance.now() - at;
}

async function submit(harness: Harness, env: NodeJS.ProcessEnv = {}): Promise<void> {
  const { code } = await harness.spawn(
    ['run', harness.list(ids), '--resource', 'annotations', '--yes', '--detach'],
    env,
  ).ended;
  if (code !== 0) throw new Error('the run was not submitted');
}

describe.concurrent('SIGTERM ends a worker within 12 s', () => {
  test('that is idle: at once', async ({ expect, onTestFinished }) => {
    const harness = await openHarness(onTestFinished);
    expect(await stop(await harness.spawnWorker())).toBeLessThan(promised(3_000));
  });

  test('that is busy: what is on the wire gets its outcome', async ({ expect, onTestFinished }) => {
    const harness = await openHarness(onTestFinished, { objects, latencyMs: 200 });
    const worker = await harness.spawnWorker();
    await submit(harness);
    await until('the worker is busy', () => harness.arrivals.length > 200);
    expect(await stop(worker)).toBeLessThan(promised(3_000));
    const cells = (await harness.cells()).flat();
    expect(cells.filter(isSettled)).toHaveLength(harness.sandbox.counts.requests);
    expect(cells.filter((cell) => !isSettled(cell) && (isDoubtful(cell) || (cell >> 4) % 2 === 1))).toEqual([]);
  });

  test('whose API hangs', async ({ expect, onTestFinished }) => {
    const harness = await openHarness(onTestFinished, { objects, faults: { hang: 1 } });
    const worker = await harness.spawnWorker();
    await submit(harness);
    await until('requests hang', () => harness.arrivals.length >= 8);
    expect(await stop(worker)).toBeLessThan(promisedMs);
  });

  test('whose API hangs, and that would wait longer for answers', async ({ expect, onTestFinished }) => {
    const harness = await openHarness(onTestFinished, { objects, faults: { hang: 1 } });
    const worker = await harness.spawnWorker(['--request-timeout-ms', '60000']);
    await submit(harness);
    await until('requests hang', () => harness.arrivals.length >= 8);
    expect(await stop(worker)).toBeLessThan(promisedMs);
  });

  test.for(['SIGSTOP', 'SIGKILL'] as const)(
    'whose Redis got %s while it was idle',
    async (signal, { expect, onTestFinished }) => {
      const { url, pid } = await openOwnRedis(onTestFinished);
      const harness = await openHarness(onTestFinished);
      const worker = await harness.spawnWorker([], { REDIS_URL: url });
      process.kill(pid, signal);
      expect(await stop(worker)).toBeLessThan(promisedMs);
    },
  );

  test('whose Redis was never there, or never answered', async ({ expect, onTestFinished }) => {
    const { url, pid } = await openOwnRedis(onTestFinished);
    process.kill(pid, 'SIGSTOP');
    const harness = await openHarness(onTestFinished);
    const nowhere = `unix://${harness.stateDir}/nobody.sock`;
    const workers = [url, nowhere].map((REDIS_URL) => harness.spawn(['worker'], { REDIS_URL }));
    await until('they look for it', () => workers.every(({ stderr }) => stderr.includes('Redis: ')));
    const took = await Promise.all(workers.map((worker) => stop(worker)));
    for (const ms of took) expect(ms).toBeLessThan(promisedMs);
  });

  test.for(['SIGSTOP', 'SIGKILL'] as const)(
    'whose Redis got %s in the middle of a run',
    async (signal, { expect, onTestFinished }) => {
      const { url, pid } = await openOwnRedis(onTestFinished);
      const harness = await openHarness(onTestFinished, { objects, latencyMs: 100 });
      const worker = await harness.spawnWorker([], { REDIS_URL: url });
      await submit(harness, { REDIS_URL: url });
      await until('the worker is busy', () => harness.arrivals.length > 200);
      process.kill(pid, signal);
      expect(await stop(worker)).toBeLessThan(promisedMs);
    },
  );
});

test.concurrent('a second signal ends a worker at once, also while requests hang', async ({
  expect,
  onTestFinished,
}) => {
  const harness = await openHarness(onTestFinished, { objects, faults: { hang: 1 } });
  const worker = await harness.spawnWorker();
  await submit(harness);
  await until('requests hang', () => harness.arrivals.length >= 8);
  worker.signal('SIGTERM');
  await until('it says that it stops', () => worker.stderr.includes('"stopping"'));
  expect(await stop(worker, 143)).toBeLessThan(promised(1_000));
});
