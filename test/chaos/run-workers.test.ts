import { describe, type ExpectStatic, test } from 'vitest';
import { isDoubtful, isMarked, isSettled } from '../../src/ledger/cell.ts';
import { findBrokenIn } from '../support/checker.ts';
import { openCluster } from '../support/cluster.ts';
import { openGuardedRedis } from '../support/guarded-redis.ts';
import { type AtEnd, type Harness, type HarnessOptions, type OwnRedis, openHarness } from '../support/harness.ts';
import { annotations, makeIds } from '../support/ids.ts';
import { bin, never, type Running, startProgram, until } from '../support/processes.ts';
import { promised, sized } from '../support/size.ts';
import { hasOpenssl } from '../support/tls.ts';

// The ends of `ended` wait for the workers as well: they hold the same stderr.

const ids = makeIds('r', sized(6_000, 20_000));
const objects = annotations(ids);
const promisedMs = promised(12_000);
const aSecondMs = promised(1_000);

type Line = { worker?: number; pid: number; msg: string; reason?: string };

/** A run with a harness of its own, and its workers. */
class WatchedRun {
  readonly harness: Harness;
  readonly size: number;
  readonly command: Running;

  /** Starts it as a shell does: as the first of a process group. */
  constructor(
    harness: Harness,
    size: number,
    { args = [], env = {} }: { args?: string[]; env?: NodeJS.ProcessEnv } = {},
  ) {
    const line = ['run', harness.list(ids), '--resource', 'annotations', '--yes', '--json', '--verbose'];
    const more = ['--workers', `${size}`, '--max-concurrency', '24', ...args];
    this.harness = harness;
    this.size = size;
    this.command = harness.own(
      startProgram(process.execPath, [bin, ...line, ...more], { PATH: process.env.PATH, ...harness.env, ...env }),
    );
  }

  get lines(): Line[] {
    const whole = this.command.stderr.split('\n').slice(0, -1);
    return whole.filter((line) => line.startsWith('{')).map((line) => JSON.parse(line));
  }

  said(words: string): Line[] {
    return this.lines.filter(({ msg }) => msg.startsWith(words));
  }

  /** Those that have started to delete, also those that died since. */
  get workers(): Line[] {
    return this.said('deleting beside the command');
  }

  /** Waits until every process has handed a chunk back, so that all of them are at work. */
  async isBusy(): Promise<void> {
    await until('all workers delete', () => this.workers.length === this.size - 1 || stopIfOver(this.command));
    const busy = () => new Set(this.said('chunk returned').map(({ pid }) => pid)).size === this.size;
    await until('each has handed a chunk back', () => busy() || stopIfOver(this.command));
  }

  signalAll(signal: NodeJS.Signals): void {
    process.kill(-this.command.pid, signal);
  }

  broken(): Promise<string | null> {
    return findBrokenIn(this.harness, ids);
  }
}

function stopIfOver(running: Running): false {
  if (running.isOver) throw new Error(`the command ended: ${running.stderr}`);
  return false;
}

async function openRun(atEnd: AtEnd, options: HarnessOptions = {}, size = 3): Promise<WatchedRun> {
  const harness = await openHarness(atEnd, { objects, latencyMs: 40, ...options });
  return new WatchedRun(harness, size);
}

/** Cells of requests that nobody knows the end of. */
async function openEnds(harness: Harness): Promise<number[]> {
  const cells = (await harness.cells()).flat();
  return cells.filter((cell) => isMarked(cell) || (isDoubtful(cell) && !isSettled(cell)));
}

/** The same command in this process, to the end. */
async function resume(harness: Harness): Promise<number | null> {
  const list = `${harness.folder}/list.txt`;
  return (await harness.run([list, '--resource', 'annotations', '--yes'])).code;
}

describe.concurrent('a run with workers', () => {
  test('deletes with all of them, and none is left', async ({ expect, onTestFinished }) => {
    const run = await openRun(onTestFinished);
    await run.isBusy();
    expect(await run.command.ended, run.command.stderr).toMatchObject({ code: 0 });
    expect(run.harness.sandbox.executed.size).toBe(ids.length);
    expect(await run.broken()).toBeNull();
    expect(run.command.stderr.match(/ completed: /g)).toHaveLength(1);
  });

  test('replaces one that is killed, and its chunks are taken over', async ({ expect, onTestFinished }) => {
    const run = await openRun(onTestFinished);
    await run.isBusy();
    const [victim] = run.workers;
    run.harness.sandbox.latencyMs = 1_000; // the run lasts until there is another
    process.kill(victim!.pid, 'SIGKILL');
    await until('there is another', () => run.workers[2] ?? stopIfOver(run.command));
    run.harness.sandbox.latencyMs = 0;
    expect(run.said('a worker exited unexpectedly')).toMatchObject([
      { reason: `worker ${victim!.worker}, ended by SIGKILL` },
    ]);
    expect(await run.command.ended, run.command.stderr).toMatchObject({ code: 0 });
    expect(await run.broken()).toBeNull();
  });

  test('goes on without one that is killed again and again', async ({ expect, onTestFinished }) => {
    const run = await openRun(onTestFinished, { latencyMs: 200 }, 2);
    for (let n = 0; n < 4; n++) {
      const victim = await until('there is a worker', () => run.workers[n]);
      process.kill(victim.pid, 'SIGKILL');
    }
    await until('it says so', () => run.said('a worker cannot run, going on without it')[0]);
    run.harness.sandbox.latencyMs = 0;
    expect(await run.command.ended, run.command.stderr).toMatchObject({ code: 0 });
    expect(run.workers).toHaveLength(4);
    expect(await run.broken()).toBeNull();
  });

  test('sends nothing any more when its command was killed, and the same command resumes', async ({
    expect,
    onTestFinished,
  }) => {
    const run = await openRun(onTestFinished);
    await run.isBusy();
    const { harness, command } = run;
    const at = performance.now();
    command.signal('SIGKILL');
    expect(await command.ended).toEqual({ code: null, signal: 'SIGKILL' });
    expect(performance.now() - at).toBeLessThan(promisedMs);
    const lastAfterMs = harness.arrivals.at(-1)! - at;
    console.log(`the last request ${Math.round(lastAfterMs)} ms after the command was killed`);
    expect(lastAfterMs).toBeLessThan(aSecondMs);
    expect(harness.sandbox.executed.size).toBeLessThan(ids.length);
    expect(await resume(harness)).toBe(0);
    expect(await run.broken()).toBeNull();
  });

  test('sends nothing while its command is frozen, and goes on with new workers', async ({
    expect,
    onTestFinished,
  }) => {
    const run = await openRun(onTestFinished);
    await run.isBusy();
    const { harness, command } = run;
    process.kill(command.pid, 'SIGSTOP');
    await until('all workers have drained', () => run.said('drained').filter(isOf('redis')).length === 2);
    const { length } = harness.arrivals;
    await never('a request arrives', () => harness.arrivals.length > length, 500);
    process.kill(command.pid, 'SIGCONT');
    await until('there are others', () => run.workers.length >= 4 || command.isOver);
    expect(await command.ended, command.stderr).toMatchObject({ code: 0 });
    expect(await run.broken()).toBeNull();
  });

  test.for([
    ['SIGINT', 130],
    ['SIGTERM', 143],
    ['SIGHUP', 143],
  ] as const)('drains when all its processes get %s', async ([signal, exit], { expect, onTestFinished }) => {
    const run = await openRun(onTestFinished);
    await run.isBusy();
    const { harness, command } = run;
    const at = performance.now();
    run.signalAll(signal);
    expect(await command.ended, command.stderr).toMatchObject({ code: exit });
    expect(performance.now() - at).toBeLessThan(promised(3_000));
    expect(await harness.onlyRun()).toMatchObject({ state: 'paused', by: 'interrupt' });
    const cells = (await harness.cells()).flat();
    expect(cells.filter(isSettled)).toHaveLength(harness.sandbox.counts.requests);
    expect(await openEnds(harness)).toEqual([]);
    expect(run.said('a worker')).toEqual([]);
    expect(await resume(harness)).toBe(0);
    expect(await run.broken()).toBeNull();
  });

  test('is gone at once after a second Ctrl-C, also while requests hang', async ({ expect, onTestFinished }) => {
    const harness = await openHarness(onTestFinished, { objects, faults: { hang: 1 } });
    const run = new WatchedRun(harness, 3);
    await until('requests of all hang', () => harness.arrivals.length >= 3 && run.workers.length === 2);
    run.signalAll('SIGINT');
    await until('it says that it stops', () => run.command.stderr.includes('Stopping: '));
    const at = performance.now();
    run.signalAll('SIGINT');
    expect(await run.command.ended).toMatchObject({ code: 130 });
    expect(performance.now() - at).toBeLessThan(aSecondMs);
  });

  test('is held by the stop file in each of them', async ({ expect, onTestFinished }) => {
    const harness = await openHarness(onTestFinished, { objects, latencyMs: 20 });
    const file = `${harness.folder}/stop`;
    const run = new WatchedRun(harness, 3, { args: ['--stop-file', file] });
    await run.isBusy();
    harness.file('stop', 'they call us');
    await until('all are stopped', () => new Set(run.said('sending stopped').map(({ pid }) => pid)).size === 3);
    // The server alone doesn't know of a request that is on its way to it: the marks in the ledger do.
    await until('nothing is in flight', async () => (await openEnds(harness)).length === 0);
    const { length } = harness.arrivals;
    await never('a request arrives', () => harness.arrivals.length > length, 500);
    run.signalAll('SIGINT');
    expect(await run.command.ended).toMatchObject({ code: 130 });
  });

  test('costs one token at a time, also where each revokes the one before', async ({ expect, onTestFinished }) => {
    const client = { id: 'abc', secret: 'canary-secret-4711' };
    const harness = await openHarness(onTestFinished, {
      objects,
      latencyMs: 50,
      client,
      tokenLifeSeconds: 3,
      oneLiveToken: true,
    });
    const env = {
      EXPUNGE_TOKEN: undefined,
      EXPUNGE_TOKEN_URL: harness.sandbox.tokenUrl,
      EXPUNGE_CLIENT_ID: client.id,
      EXPUNGE_CLIENT_SECRET: client.secret,
    };
    const began = performance.now();
    const run = new WatchedRun(harness, 3, { env });
    await run.isBusy();
    expect(await run.command.ended, run.command.stderr).toMatchObject({ code: 0 });
    expect(harness.sandbox.counts.tokens).toBeLessThan(4 + (performance.now() - began) / 1_000);
    expect(run.command.stderr).not.toContain(client.secret);
    expect(await run.broken()).toBeNull();
  });

  test('halts with 5 when the API refuses the token', async ({ expect, onTestFinished }) => {
    const run = await openRun(onTestFinished);
    await run.isBusy();
    run.harness.sandbox.faults = { 'status-401': 1 };
    expect(await run.command.ended, run.command.stderr).toMatchObject({ code: 5 });
    expect(await run.harness.onlyRun()).toMatchObject({ state: 'halted', halt: 'credentials' });
  });
});

describe.concurrent('workers of a run find the Redis of their command', () => {
  const deletes = async (atEnd: AtEnd, redis: OwnRedis, expect: ExpectStatic) => {
    const harness = await openHarness(atEnd, { objects, latencyMs: 20 }, redis);
    const run = new WatchedRun(harness, 3);
    await run.isBusy();
    expect(await run.command.ended, run.command.stderr).toMatchObject({ code: 0 });
    expect(await run.broken()).toBeNull();
  };

  test.skipIf(!hasOpenssl())('behind TLS, with the login of the README', async ({ expect, onTestFinished }) => {
    const redis = await openGuardedRedis(onTestFinished);
    await deletes(onTestFinished, redis, expect);
    expect(await redis.refusals()).toEqual([]);
  });

  test('in a cluster', async ({ expect, onTestFinished }) => {
    await deletes(onTestFinished, await openCluster(onTestFinished), expect);
  });
});

function isOf(part: string) {
  return (line: Line) => (line as { part?: string }).part === part;
}
