import { describe, test } from 'vitest';
import { isDoubtful, isSettled } from '../../src/ledger/cell.ts';
import { keys } from '../../src/redis/keys.ts';
import { findBroken } from '../support/checker.ts';
import { type AtEnd, type Harness, openHarness } from '../support/harness.ts';
import { annotations, makeIds } from '../support/ids.ts';
import { never, type Running, until } from '../support/processes.ts';
import { promised } from '../support/size.ts';

const ids = makeIds('s', 1_200);
const bystanders = makeIds('b', 20);
const objects = annotations([...ids, ...bystanders]);
const slow = { objects, latencyMs: 50 }; // with 16 requests at once some 300 a second
const settings = { EXPUNGE_MAX_CONCURRENCY: '16' };
const promisedMs = promised(1_000);
const lookMs = 1_000;

type SteeredRun = { harness: Harness; start: () => Running };

async function openSteeredRun(atEnd: AtEnd): Promise<SteeredRun> {
  const harness = await openHarness(atEnd, slow);
  const args = ['run', harness.list(ids), '--resource', 'annotations', '--yes'];
  return { harness, start: () => harness.spawn(args, settings) };
}

async function midRun({ arrivals }: Harness): Promise<void> {
  await until('the run is in the middle', () => arrivals.length > 200);
}

/** Nothing arrives once every chunk has been returned, which happens without doubt, and within a second after `at`. */
async function stopsCleanly(harness: Harness, at: number): Promise<void> {
  const { id } = await harness.onlyRun();
  await until(
    'every chunk is returned',
    async () => (await harness.redis.hlen(keys.open(id))) === 0 || (await unclaimed(harness)),
  );
  const requests = harness.arrivals.length;
  await never('a request after all was returned', () => harness.arrivals.length > requests, lookMs);
  if (harness.arrivals.at(-1)! - at > promisedMs) throw new Error('a request came later than a second');
  const open = (await harness.cells()).flat().filter((cell) => !isSettled(cell));
  if (open.some((cell) => isDoubtful(cell) || ((cell >> 4) & 1) === 1)) throw new Error('an id was made doubtful');
  if (open.length === 0) throw new Error('the run was not in the middle');
}

async function unclaimed({ redis, onlyRun }: Harness): Promise<boolean> {
  return Object.values(await redis.hgetall(keys.open((await onlyRun()).id))).every((epoch) => epoch === '0');
}

async function findTrouble(harness: Harness): Promise<string | null> {
  const run = await harness.onlyRun();
  const { gone_unconfirmed, unknown } = run.counts;
  if (gone_unconfirmed + unknown > 0) return `${gone_unconfirmed} gone_unconfirmed, ${unknown} unknown`;
  return findBroken({ ...harness, run, resource: 'annotations', ids, bystanders });
}

/** Runs a steering command to its end; returns when it began to be true. */
async function steer(harness: Harness, action: string, ...more: string[]): Promise<number> {
  const command = harness.spawn([action, (await harness.onlyRun()).id, ...more]);
  const { code } = await command.ended;
  if (code !== 0) throw new Error(`${action} failed: ${command.stderr}`);
  return performance.now();
}

describe.concurrent('a run in its own process', () => {
  test('is paused and resumed from elsewhere', async ({ expect, onTestFinished }) => {
    const { harness, start } = await openSteeredRun(onTestFinished);
    const running = start();
    await midRun(harness);
    await stopsCleanly(harness, await steer(harness, 'pause', '--reason', 'a test'));
    expect(running.isOver).toBe(false);
    expect(await harness.onlyRun()).toMatchObject({ state: 'paused', reason: 'a test', by: 'operator' });
    await steer(harness, 'resume');
    expect(await running.ended).toMatchObject({ code: 0 });
    expect(await findTrouble(harness)).toBeNull();
  });

  test('is cancelled from elsewhere', async ({ expect, onTestFinished }) => {
    const { harness, start } = await openSteeredRun(onTestFinished);
    const running = start();
    await midRun(harness);
    await stopsCleanly(harness, await steer(harness, 'cancel', '--yes'));
    expect(await running.ended).toMatchObject({ code: 3 });
    const run = await harness.onlyRun();
    expect(run.state).toBe('cancelled');
    expect(run.counts.not_attempted).toBeGreaterThan(0);
    expect(run.counts.deleted + run.counts.not_attempted).toBe(ids.length);
    expect(await findTrouble(harness)).toBeNull();
  });

  test.for([
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const)(
    'ends on %s with %i, and the same command goes on',
    async ([signal, exit], { expect, onTestFinished }) => {
      const { harness, start } = await openSteeredRun(onTestFinished);
      const running = start();
      await midRun(harness);
      const at = performance.now();
      running.signal(signal);
      expect(await running.ended).toMatchObject({ code: exit });
      await stopsCleanly(harness, at);
      expect(await harness.onlyRun()).toMatchObject({ state: 'paused', by: 'interrupt' });
      expect(await start().ended).toMatchObject({ code: 0 });
      expect(await harness.runs()).toHaveLength(1);
      expect(await findTrouble(harness)).toBeNull();
    },
  );

  test('ends within a second on the second SIGINT, also while requests hang', async ({ expect, onTestFinished }) => {
    const harness = await openHarness(onTestFinished, { objects, faults: { hang: 1 } });
    const running = harness.spawn(['run', harness.list(ids), '--resource', 'annotations', '--yes'], settings);
    await until('requests hang', () => harness.arrivals.length >= 4);
    running.signal('SIGINT');
    await until('it says that it stops', () => running.stderr.includes('Stopping'));
    const at = performance.now();
    running.signal('SIGINT');
    expect(await running.ended).toMatchObject({ code: 130 });
    expect(performance.now() - at).toBeLessThan(promisedMs);
  });
});

describe.concurrent('a detached run with two workers', () => {
  async function detached(atEnd: AtEnd): Promise<SteeredRun> {
    const harness = await openHarness(atEnd, { ...slow, latencyMs: 100 });
    const args = ['run', harness.list(ids), '--resource', 'annotations', '--yes', '--detach'];
    await Promise.all([harness.spawnWorker([], settings), harness.spawnWorker([], settings)]);
    return { harness, start: () => harness.spawn(args) };
  }

  test('is paused and resumed', async ({ expect, onTestFinished }) => {
    const { harness, start } = await detached(onTestFinished);
    expect(await start().ended).toMatchObject({ code: 0 });
    await midRun(harness);
    await stopsCleanly(harness, await steer(harness, 'pause'));
    await steer(harness, 'resume');
    await harness.runIs('completed', ({ state }) => state === 'completed');
    expect(await findTrouble(harness)).toBeNull();
  });

  test('is cancelled', async ({ expect, onTestFinished }) => {
    const { harness, start } = await detached(onTestFinished);
    expect(await start().ended).toMatchObject({ code: 0 });
    await midRun(harness);
    await stopsCleanly(harness, await steer(harness, 'cancel', '--yes'));
    expect((await harness.onlyRun()).state).toBe('cancelled');
    expect(await findTrouble(harness)).toBeNull();
  });
});
