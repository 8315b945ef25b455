import { describe, type ExpectStatic, test } from 'vitest';
import { isDoubtful, isMarked, isSettled } from '../../src/ledger/cell.ts';
import { findBrokenIn } from '../support/checker.ts';
import { openCluster } from '../support/cluster.ts';
import { startRun } from '../support/fleet.ts';
import { openGuardedRedis } from '../support/guarded-redis.ts';
import { type AtEnd, type Harness, type HarnessOptions, type OwnRedis, openHarness } from '../support/harness.ts';
import { annotations, makeIds } from '../support/ids.ts';
import { bin, never, type Running, startProgram, until } from '../support/processes.ts';
import { promised, sized } from '../support/size.ts';
import { hasOpenssl } from '../support/tls.ts';

// The ends of `ended` wait for the children as well: they hold the same stderr.

const ids = makeIds('c', sized(6_000, 20_000));
const objects = annotations(ids);
const promisedMs = promised(12_000);
const aSecondMs = promised(1_000);

type Line = { worker?: number; pid: number; msg: string; code?: number; reason?: string };
type CrewOptions = { args?: string[]; env?: NodeJS.ProcessEnv };

/** `worker --workers N`, in a process group of its own as a shell starts it. */
class Crew {
  readonly harness: Harness;
  readonly size: number;
  readonly parent: Running;

  constructor(harness: Harness, size: number, { args = [], env = {} }: CrewOptions = {}) {
    const line = [bin, 'worker', '--workers', `${size}`, '--max-concurrency', '8', '--log-level', 'debug', ...args];
    this.harness = harness;
    this.size = size;
    this.parent = harness.own(startProgram(process.execPath, line, { PATH: process.env.PATH, ...harness.env, ...env }));
  }

  said(words: string): Line[] {
    const whole = this.parent.stderr.split('\n').slice(0, -1);
    return whole.map((line): Line => JSON.parse(line)).filter(({ msg }) => msg.startsWith(words));
  }

  /** What the workers have said so far that they are ready, also those that died since. */
  get ready(): Line[] {
    return this.said('ready');
  }

  async isReady(): Promise<void> {
    await until('all workers are ready', () => this.ready.length === this.size || stopIfOver(this.parent));
  }

  /** Waits until every process has returned a chunk, so that all of them are at work. */
  async isBusy(): Promise<void> {
    const busy = () => new Set(this.said('chunk returned').map(({ pid }) => pid)).size === this.size;
    await until('each has returned a chunk', () => busy() || stopIfOver(this.parent));
  }

  signalAll(signal: NodeJS.Signals): void {
    process.kill(-this.parent.pid, signal);
  }
}

function stopIfOver(running: Running): false {
  if (running.isOver) throw new Error(`the parent ended: ${running.stderr}`);
  return false;
}

/** A crew at work on a detached run. */
async function openBusyCrew(
  atEnd: AtEnd,
  { size = 3, ...options }: HarnessOptions & CrewOptions & { size?: number } = {},
): Promise<Crew> {
  const harness = await openHarness(atEnd, { objects, latencyMs: 40, ...options });
  const crew = await startBusyCrew(harness, size, options);
  return crew;
}

async function startBusyCrew(harness: Harness, size: number, options: CrewOptions = {}): Promise<Crew> {
  const crew = new Crew(harness, size, options);
  await crew.isReady();
  await startRun(harness, ids, ['--detach', '--rate', '300/s']); // it lasts until each process is busy, even on a slow machine
  await crew.isBusy();
  return crew;
}

/** Cells of requests that nobody knows the end of. */
async function openEnds(harness: Harness): Promise<number[]> {
  const cells = (await harness.cells()).flat();
  return cells.filter((cell) => isMarked(cell) || (isDoubtful(cell) && !isSettled(cell)));
}

/** Waits until the run is completed, as fast as it can; what is wrong with it then, or null. */
async function brokenAtTheEnd({ harness }: Crew): Promise<string | null> {
  harness.sandbox.latencyMs = 0;
  await harness.expunge(['rate', (await harness.onlyRun()).id, 'none']);
  await harness.runIs('completed', ({ state }) => state === 'completed', 120_000);
  return findBrokenIn(harness, ids);
}

/** Another worker ends the run of a crew that has gone. */
async function brokenAfterAnother(crew: Crew): Promise<string | null> {
  await crew.harness.spawnWorker();
  return brokenAtTheEnd(crew);
}

async function msFrom(at: number, parent: Running): Promise<[ms: number, code: number | null]> {
  const { code } = await parent.ended;
  return [performance.now() - at, code];
}

describe.concurrent('several workers under one parent', () => {
  test('delete a run together, and none of its ids is left', async ({ expect, onTestFinished }) => {
    const crew = await openBusyCrew(onTestFinished);
    expect(crew.ready.map(({ worker }) => worker).toSorted()).toEqual([1, 2, 3]);
    expect(new Set(crew.ready.map(({ pid }) => pid)).size).toBe(3);
    expect(await brokenAtTheEnd(crew)).toBeNull();
    expect(crew.harness.sandbox.executed.size).toBe(ids.length);
    crew.parent.signal('SIGTERM');
    expect(await crew.parent.ended).toMatchObject({ code: 0 });
    expect(crew.said('stopped')).toHaveLength(3);
  });

  test('replace one that is killed, under its number, and take its chunks over', async ({ expect, onTestFinished }) => {
    const crew = await openBusyCrew(onTestFinished);
    const victim = crew.ready.find(({ worker }) => worker === 2)!;
    crew.harness.sandbox.latencyMs = 1_000; // the run lasts until there is another
    process.kill(victim.pid, 'SIGKILL');
    const heir = await until('there is another', () => crew.ready[3] ?? stopIfOver(crew.parent));
    expect(heir.worker).toBe(2);
    expect(crew.said('a worker exited unexpectedly')).toMatchObject([
      { worker: 2, signal: 'SIGKILL', code: null, reason: 'worker 2, ended by SIGKILL' },
    ]);
    expect(await brokenAtTheEnd(crew)).toBeNull();
  });

  test('replace one that is killed again and again, however often', async ({ expect, onTestFinished }) => {
    const crew = await openBusyCrew(onTestFinished, { size: 2, latencyMs: 100 });
    crew.harness.sandbox.latencyMs = 1_000;
    const lives = () => crew.ready.filter(({ worker }) => worker === 2);
    for (let n = 0; n < 4; n++) {
      const victim = await until('there is a worker', () => lives()[n] ?? stopIfOver(crew.parent));
      process.kill(victim.pid, 'SIGKILL');
    }
    await until('there is a fifth', () => lives()[4] ?? stopIfOver(crew.parent));
    expect(crew.said('a worker exited unexpectedly')).toHaveLength(4);
    expect(crew.ready.filter(({ worker }) => worker === 1)).toHaveLength(1);
    expect(await brokenAtTheEnd(crew)).toBeNull();
  });

  test('drain together when their parent is asked to', async ({ expect, onTestFinished }) => {
    const crew = await openBusyCrew(onTestFinished);
    const at = performance.now();
    crew.parent.signal('SIGTERM');
    expect(await msFrom(at, crew.parent)).toEqual([expect.toSatisfy((ms) => ms < promisedMs), 0]);
    expect(crew.said('stopped')).toHaveLength(3);
    expect(crew.harness.sandbox.executed.size).toBeLessThan(ids.length);
    expect(await openEnds(crew.harness)).toEqual([]);
  });

  /** @invariant command-leads */
  test('send nothing any more when their parent is killed, and leave nothing on its way', async ({
    expect,
    onTestFinished,
  }) => {
    const crew = await openBusyCrew(onTestFinished);
    const { harness, parent } = crew;
    const at = performance.now();
    parent.signal('SIGKILL');
    expect(await msFrom(at, parent)).toEqual([expect.toSatisfy((ms) => ms < promisedMs), null]);
    const lastAfterMs = harness.arrivals.at(-1)! - at;
    console.log(`the last request ${Math.round(lastAfterMs)} ms after the parent was killed`);
    expect(lastAfterMs).toBeLessThan(aSecondMs);
    const cells = (await harness.cells()).flat();
    expect(cells.filter(isSettled)).toHaveLength(harness.sandbox.counts.requests);
    expect(await openEnds(harness)).toEqual([]);
    expect(harness.sandbox.executed.size).toBeLessThan(ids.length);
    expect(await brokenAfterAnother(crew)).toBeNull();
  });

  test('delete on while their parent is frozen, and drain when it wakes', async ({ expect, onTestFinished }) => {
    const crew = await openBusyCrew(onTestFinished);
    process.kill(crew.parent.pid, 'SIGSTOP');
    expect(await brokenAtTheEnd(crew)).toBeNull();
    crew.parent.signal('SIGTERM');
    process.kill(crew.parent.pid, 'SIGCONT');
    expect(await crew.parent.ended).toMatchObject({ code: 0 });
    expect(crew.said('stopped')).toHaveLength(3);
    expect(crew.said('a worker exited')).toEqual([]);
  });

  test.for(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)(
    'drain when all their processes get %s',
    async (signal, { expect, onTestFinished }) => {
      const crew = await openBusyCrew(onTestFinished);
      const { harness, parent } = crew;
      const at = performance.now();
      crew.signalAll(signal);
      expect(await msFrom(at, parent)).toEqual([expect.toSatisfy((ms) => ms < promised(3_000)), 0]);
      expect(await harness.onlyRun()).toMatchObject({ state: 'running', detached: true });
      const cells = (await harness.cells()).flat();
      expect(cells.filter(isSettled)).toHaveLength(harness.sandbox.counts.requests);
      expect(await openEnds(harness)).toEqual([]);
      expect(crew.said('a worker')).toEqual([]);
      expect(await brokenAfterAnother(crew)).toBeNull();
    },
  );

  test.for([
    ['their parent', 'SIGTERM', 143],
    ['all of them', 'SIGINT', 130],
  ] as const)(
    'are gone at once after a second signal to %s, also while requests hang',
    async ([whom, signal, exit], { expect, onTestFinished }) => {
      const harness = await openHarness(onTestFinished, { objects, faults: { hang: 1 } });
      const crew = new Crew(harness, 2);
      await crew.isReady();
      await startRun(harness, ids, ['--detach']);
      await until('requests hang', () => harness.arrivals.length >= 2);
      const send = () => (whom === 'all of them' ? crew.signalAll(signal) : crew.parent.signal(signal));
      send();
      await until('it says that it stops', () => crew.said('stopping').some(({ worker }) => worker === undefined));
      const at = performance.now();
      send();
      expect(await msFrom(at, crew.parent)).toEqual([expect.toSatisfy((ms) => ms < aSecondMs), exit]);
    },
  );

  test('are held by the stop file, each of them', async ({ expect, onTestFinished }) => {
    const harness = await openHarness(onTestFinished, { objects, latencyMs: 40 });
    const crew = await startBusyCrew(harness, 3, { args: ['--stop-file', `${harness.folder}/stop`] });
    harness.file('stop', 'they call us');
    await until('all are stopped', () => new Set(crew.said('sending stopped').map(({ pid }) => pid)).size === 3);
    // The server alone doesn't know of a request that is on its way to it: the marks in the ledger do.
    await until('nothing is in flight', async () => (await openEnds(harness)).length === 0);
    const { length } = harness.arrivals;
    await never('a request arrives', () => harness.arrivals.length > length, 500);
    crew.signalAll('SIGINT');
    expect(await crew.parent.ended).toMatchObject({ code: 0 });
  });

  test('get a token each, and show nothing of how', async ({ expect, onTestFinished }) => {
    const client = { id: 'abc', secret: 'canary-secret-4711' };
    const harness = await openHarness(onTestFinished, { objects, latencyMs: 40, client, tokenLifeSeconds: 3 });
    const env = {
      EXPUNGE_TOKEN: undefined,
      EXPUNGE_TOKEN_URL: harness.sandbox.tokenUrl,
      EXPUNGE_CLIENT_ID: client.id,
      EXPUNGE_CLIENT_SECRET: client.secret,
    };
    const began = performance.now();
    const crew = await startBusyCrew(harness, 3, { env });
    expect(await brokenAtTheEnd(crew)).toBeNull();
    const most = 3 * (2 + (performance.now() - began) / 1_000);
    expect(harness.sandbox.counts.tokens).toBeGreaterThanOrEqual(3);
    expect(harness.sandbox.counts.tokens).toBeLessThan(most);
    expect(crew.parent.stderr).not.toContain(client.secret);
  });

  test('halt the run when the API refuses the token', async ({ expect, onTestFinished }) => {
    const crew = await openBusyCrew(onTestFinished);
    crew.harness.sandbox.faults = { 'status-401': 1 };
    expect(await crew.harness.runIs('halted', ({ state }) => state === 'halted')).toMatchObject({
      halt: 'credentials',
    });
  });

  test('end together with 5 when the credentials are refused', async ({ expect, onTestFinished }) => {
    const harness = await openHarness(onTestFinished, { objects });
    const env = {
      EXPUNGE_TOKEN_URL: harness.sandbox.tokenUrl,
      EXPUNGE_CLIENT_ID: harness.sandbox.client.id,
      EXPUNGE_CLIENT_SECRET: 'another',
      EXPUNGE_TOKEN: undefined,
    };
    const { parent } = new Crew(harness, 2, { env });
    const { code } = await parent.ended;
    expect(code).toBe(5);
    expect(parent.stderr).toContain('a worker cannot run, stopping all workers');
    expect(parent.stderr).not.toContain('a worker exited unexpectedly');
  });
});

describe.concurrent('several workers under one parent find the Redis of their parent', () => {
  const deletes = async (atEnd: AtEnd, redis: OwnRedis, expect: ExpectStatic) => {
    const harness = await openHarness(atEnd, { objects, latencyMs: 40 }, redis);
    expect(await brokenAtTheEnd(await startBusyCrew(harness, 3))).toBeNull();
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
