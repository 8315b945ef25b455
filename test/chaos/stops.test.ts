import { describe, test } from 'vitest';
import { isDoubtful, isMarked, isSettled } from '../../src/ledger/cell.ts';
import { findBrokenIn } from '../support/checker.ts';
import { type AtEnd, type Harness, openHarness } from '../support/harness.ts';
import { annotations, makeIds } from '../support/ids.ts';
import { openOwnRedis } from '../support/own-redis.ts';
import { never, type Running, until } from '../support/processes.ts';
import { promised, sized } from '../support/size.ts';

// What a signal that can be caught does needs no process of its own.

const ids = makeIds('r', sized(1_200, 10_000));
const objects = annotations(ids);
const concurrency = 16;
const settings = { EXPUNGE_MAX_CONCURRENCY: `${concurrency}` };

const runOf = (harness: Harness, ...more: string[]) =>
  ['run', harness.list(ids), '--resource', 'annotations', '--yes', ...more] as const;

async function openSlowApi(atEnd: AtEnd): Promise<Harness> {
  const harness = await openHarness(atEnd, { objects, latencyMs: 40 });
  Object.assign(harness.env, settings);
  return harness;
}

async function isUnderWay({ sandbox }: Harness, running: Running): Promise<void> {
  const { length } = sandbox.seen;
  await until('it is in the middle', () => sandbox.seen.length > length + 200 || stopIfOver(running));
}

function stopIfOver(running: Running): false {
  if (running.isOver) throw new Error(`it ended: ${running.stderr}`);
  return false;
}

/** Each request has its outcome, of the ids that are left none is marked or in doubt, and no request comes any more. */
async function leftNothing({ cells, sandbox }: Harness): Promise<string | null> {
  const all = (await cells()).flat();
  const settled = all.filter(isSettled).length;
  if (settled !== sandbox.counts.requests) return `${settled} of ${sandbox.counts.requests} requests have an outcome`;
  if (settled === ids.length) return 'the run was not in the middle';
  const open = all.filter((cell) => isMarked(cell) || (isDoubtful(cell) && !isSettled(cell)));
  return open.length === 0 ? null : `${open.length} ids are marked or in doubt`;
}

describe.concurrent('a run that its command deletes', () => {
  /** @invariant command-leads: Nothing of a foreground run is sent without its command, and nothing by workers whose supervisor was killed. */
  test('sends nothing while its command is frozen or after it was killed, although a worker lives, and the same command resumes', async ({
    expect,
    onTestFinished,
  }) => {
    const harness = await openSlowApi(onTestFinished);
    await harness.worker();
    const command = harness.spawn(runOf(harness));
    for (const signal of ['SIGSTOP', 'SIGKILL'] as const) {
      command.signal('SIGCONT');
      await isUnderWay(harness, command);
      command.signal(signal);
      const most = harness.arrivals.length + concurrency; // those were on their way
      await never('a request arrives', () => harness.arrivals.length > most, 3_500); // a worker looks for work every 3 s
    }
    expect(await command.ended).toEqual({ code: null, signal: 'SIGKILL' });
    expect(harness.sandbox.executed.size).toBeLessThan(ids.length);
    harness.sandbox.latencyMs = 0;
    expect(await harness.expunge(runOf(harness))).toMatchObject({ code: 0 });
    expect(await findBrokenIn(harness, ids)).toBeNull();
  });

  test('drains when its command gets SIGINT, SIGTERM or SIGHUP, and goes on with the same command', async ({
    expect,
    onTestFinished,
  }) => {
    const harness = await openSlowApi(onTestFinished);
    for (const [signal, exit] of [
      ['SIGINT', 130],
      ['SIGTERM', 143],
      ['SIGHUP', 143],
    ] as const) {
      const command = harness.start(runOf(harness));
      await isUnderWay(harness, command);
      const at = performance.now();
      command.signal(signal);
      expect(await command.ended, command.stderr).toMatchObject({ code: exit });
      expect(performance.now() - at).toBeLessThan(promised(3_000));
      expect(await harness.onlyRun()).toMatchObject({ state: 'paused', by: 'interrupt' });
      expect(await leftNothing(harness)).toBeNull();
    }
    expect(await harness.expunge(runOf(harness))).toMatchObject({ code: 0 });
    expect((await harness.onlyRun()).counts).toMatchObject({ deleted: ids.length });
    expect(await findBrokenIn(harness, ids)).toBeNull();
  });

  test('is gone after a second Ctrl-C, also while requests hang', async ({ expect, onTestFinished }) => {
    const harness = await openHarness(onTestFinished, { objects, faults: { hang: 1 } });
    const command = harness.spawn(runOf(harness));
    await until('requests hang', () => harness.arrivals.length >= 2 || stopIfOver(command));
    command.signal('SIGINT');
    await until('it says that it stops', () => command.stderr.includes('Stopping: '));
    const at = performance.now();
    command.signal('SIGINT');
    expect(await command.ended).toMatchObject({ code: 130 });
    expect(performance.now() - at).toBeLessThan(promised(1_000));
  });

  test('is paused, resumed and cancelled from elsewhere, and each time returns what it holds', async ({
    expect,
    onTestFinished,
  }) => {
    const harness = await openSlowApi(onTestFinished);
    const command = harness.start(runOf(harness));
    await isSteered(harness, command);
    expect(await command.ended).toMatchObject({ code: 3 });
    const { counts } = await harness.onlyRun();
    expect(counts.deleted + counts.not_attempted).toBe(ids.length);
    expect(await findBrokenIn(harness, ids)).toBeNull();
  });
});

describe.concurrent('a detached run', () => {
  test('is paused, resumed and cancelled while two workers delete it, which return what they hold', async ({
    expect,
    onTestFinished,
  }) => {
    const harness = await openSlowApi(onTestFinished);
    const [worker] = await Promise.all([harness.worker(), harness.worker()]);
    await harness.expunge(runOf(harness, '--detach'));
    await isSteered(harness, worker!);
    await harness.runIs('cancelled', ({ state }) => state === 'cancelled');
    expect(await findBrokenIn(harness, ids)).toBeNull();
  });

  test('whose worker gets SIGTERM: what is on the wire gets its outcome', async ({ expect, onTestFinished }) => {
    const harness = await openSlowApi(onTestFinished);
    const worker = await harness.worker();
    await harness.expunge(runOf(harness, '--detach'));
    await isUnderWay(harness, worker);
    expect(await stop(worker)).toBeLessThan(promised(3_000));
    expect(await leftNothing(harness)).toBeNull();
  });
});

/** Pauses, resumes and cancels the run: nothing arrives once all that was held has been returned, and nothing is in doubt. */
async function isSteered(harness: Harness, running: Running): Promise<void> {
  const { id } = await harness.onlyRun();
  for (const [action, ...more] of [['pause'], ['cancel', '--yes']] as const) {
    await isUnderWay(harness, running);
    const { code, stderr } = await harness.expunge([action, id, ...more]);
    if (code !== 0) throw new Error(`${action} failed: ${stderr}`);
    await until('nothing is left on its way', async () => (await leftNothing(harness)) === null);
    const { length } = harness.arrivals;
    await never('a request arrives', () => harness.arrivals.length > length, 500);
    if (action === 'pause') await harness.expunge(['resume', id]);
  }
}

/** Tells a worker to end; returns how long that took it. */
async function stop(worker: Running): Promise<number> {
  const at = performance.now();
  worker.signal('SIGTERM');
  const { code } = await worker.ended;
  if (code !== 0) throw new Error(`it ended with ${code}: ${worker.stderr}`);
  return performance.now() - at;
}

const blows = sized(['SIGSTOP'] as const, ['SIGSTOP', 'SIGKILL'] as const);
const moments = sized(['in the middle of a run'] as const, ['while it was idle', 'in the middle of a run'] as const);

describe.concurrent('SIGTERM ends a worker', () => {
  test('whose API hangs, although it would wait longer for answers', async ({ expect, onTestFinished }) => {
    const harness = await openHarness(onTestFinished, { objects, faults: { hang: 1 } });
    const worker = await harness.worker([], { EXPUNGE_REQUEST_TIMEOUT_MS: '60000' });
    await harness.expunge(runOf(harness, '--detach'));
    await until('requests hang', () => harness.arrivals.length >= 8);
    expect(await stop(worker)).toBeLessThan(promised(12_000));
  });

  test.for(blows.flatMap((signal) => moments.map((when) => [signal, when] as const)))(
    'whose Redis got %s %s',
    async ([signal, when], { expect, onTestFinished }) => {
      const { url, pid } = await openOwnRedis(onTestFinished);
      const harness = await openHarness(onTestFinished, { objects, latencyMs: 100 });
      const worker = await harness.worker([], { REDIS_URL: url });
      if (when !== 'while it was idle') {
        await harness.expunge(runOf(harness, '--detach'), { env: { REDIS_URL: url } });
        await isUnderWay(harness, worker);
      }
      process.kill(pid, signal);
      expect(await stop(worker)).toBeLessThan(promised(12_000));
    },
  );

  test('whose Redis was never there, or never answered', async ({ expect, onTestFinished }) => {
    const { url, pid } = await openOwnRedis(onTestFinished);
    process.kill(pid, 'SIGSTOP');
    const harness = await openHarness(onTestFinished);
    const urls = [url, `unix://${harness.stateDir}/nobody.sock`];
    const workers = urls.map((REDIS_URL) => harness.start(['worker'], { REDIS_URL }));
    await until('they look for it', () => workers.every(({ stderr }) => stderr.includes('Redis: ')));
    for (const ms of await Promise.all(workers.map(stop))) expect(ms).toBeLessThan(promised(12_000));
  });
});
