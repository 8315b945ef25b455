import { describe, test } from 'vitest';
import { isDoubtful, isMarked, isSettled } from '../../src/ledger/cell.ts';
import { findBrokenIn } from '../support/checker.ts';
import { startRun } from '../support/fleet.ts';
import { type Harness, openHarness } from '../support/harness.ts';
import { annotations, makeIds } from '../support/ids.ts';
import { bin, type Running, startProgram, until, without } from '../support/processes.ts';
import { promised, sized } from '../support/size.ts';

// The ends of `ended` wait for the children as well: they hold the same stderr.

const ids = makeIds('c', sized(2_000, 20_000));
const objects = annotations(ids);
const size = sized(2, 3);

type Line = { worker?: number; pid: number; msg: string; code?: number; reason?: string };

/** `worker --workers N`, in a process group of its own as a shell starts it. */
class Crew {
  readonly parent: Running;
  readonly #harness: Harness;

  constructor(harness: Harness) {
    const line = [bin, 'worker', '--workers', `${size}`, '--max-concurrency', '8'];
    const env = { PATH: process.env.PATH, ...harness.env, ...without('patience') };
    this.parent = harness.own(startProgram(process.execPath, line, env));
    this.#harness = harness;
  }

  said(words: string): Line[] {
    const whole = this.parent.stderr.split('\n').slice(0, -1);
    return whole.map((line): Line => JSON.parse(line)).filter(({ msg }) => msg.startsWith(words));
  }

  /** What the workers have said so far that they are ready, also those that died since. */
  get ready(): Line[] {
    return this.said('ready');
  }

  until(what: string, condition: () => boolean): Promise<unknown> {
    return until(what, () => {
      if (this.parent.isOver) throw new Error(`the parent ended: ${this.parent.stderr}`);
      return condition();
    });
  }

  /** Waits until they are in the middle of the run. */
  async isBusy(): Promise<void> {
    const { arrivals, runs } = this.#harness;
    await this.until('all workers are ready', () => this.ready.length === size);
    const { length } = arrivals;
    if ((await runs()).length === 0) await startRun(this.#harness, ids, ['--detach', '--rate', '300/s']);
    await this.until('requests come', () => arrivals.length > length + 200);
  }

  signalAll(signal: NodeJS.Signals): void {
    process.kill(-this.parent.pid, signal);
  }
}

/** Each request has its outcome, and of no other id it is unknown whether one was sent. */
async function leftNothing({ cells, sandbox }: Harness): Promise<boolean> {
  const all = (await cells()).flat();
  const open = all.filter((cell) => isMarked(cell) || (isDoubtful(cell) && !isSettled(cell)));
  return open.length === 0 && all.filter(isSettled).length === sandbox.counts.requests;
}

/** Waits until the run is completed, as fast as it can; what is wrong with it then, or null. */
async function brokenAtTheEnd(harness: Harness): Promise<string | null> {
  harness.sandbox.latencyMs = 0;
  await harness.expunge(['rate', (await harness.onlyRun()).id, 'none']);
  await harness.runIs('completed', ({ state }) => state === 'completed');
  return findBrokenIn(harness, ids);
}

describe.concurrent('several workers under one parent', () => {
  test('replace each that is killed, delete on while their parent is frozen, and drain when it wakes', async ({
    expect,
    onTestFinished,
  }) => {
    const harness = await openHarness(onTestFinished, { objects, latencyMs: 40 });
    const crew = new Crew(harness);
    await crew.isBusy();
    const lives = () => crew.ready.filter(({ worker }) => worker === 2);
    for (let kills = 1; kills <= 2; kills++) {
      process.kill(lives().at(-1)!.pid, 'SIGKILL');
      await crew.until('there is another', () => lives().length > kills);
    }
    expect(crew.ready.filter(({ worker }) => worker === 1)).toHaveLength(1);
    expect(crew.said('a worker exited unexpectedly')).toMatchObject(
      Array(2).fill({ worker: 2, signal: 'SIGKILL', code: null, reason: 'worker 2, ended by SIGKILL' }),
    );
    process.kill(crew.parent.pid, 'SIGSTOP');
    expect(await brokenAtTheEnd(harness)).toBeNull();
    expect(harness.sandbox.executed.size).toBe(ids.length);
    crew.parent.signal('SIGTERM');
    process.kill(crew.parent.pid, 'SIGCONT');
    expect(await crew.parent.ended).toMatchObject({ code: 0 });
    expect(crew.said('stopped')).toHaveLength(size);
  });

  /** @invariant command-leads */
  test('send nothing any more when their parent is killed or all get a signal, and leave nothing on its way', async ({
    expect,
    onTestFinished,
  }) => {
    const harness = await openHarness(onTestFinished, { objects, latencyMs: 40 });
    const ends = [
      [(crew: Crew) => crew.parent.signal('SIGKILL'), null, 12_000],
      [(crew: Crew) => crew.signalAll('SIGHUP'), 0, 3_000],
    ] as const;
    for (const [strike, code, ms] of ends) {
      const crew = new Crew(harness);
      await crew.isBusy();
      const at = performance.now();
      strike(crew);
      expect(await crew.parent.ended).toMatchObject({ code });
      expect(performance.now() - at).toBeLessThan(promised(ms));
      expect(harness.arrivals.at(-1)! - at).toBeLessThan(promised(1_000));
      expect(await leftNothing(harness)).toBe(true);
      expect(crew.said('a worker')).toEqual([]);
      expect(await harness.onlyRun()).toMatchObject({ state: 'running', detached: true });
    }
    await harness.worker();
    expect(await brokenAtTheEnd(harness)).toBeNull();
  });

  test('are gone after a second Ctrl-C, also while requests hang', async ({ expect, onTestFinished }) => {
    const harness = await openHarness(onTestFinished, { objects, faults: { hang: 1 } });
    const crew = new Crew(harness);
    await crew.until('all workers are ready', () => crew.ready.length === size);
    await startRun(harness, ids, ['--detach']);
    await until('requests hang', () => harness.arrivals.length >= 2);
    crew.signalAll('SIGINT');
    await until('it says that it stops', () => crew.said('stopping').some(({ worker }) => worker === undefined));
    const at = performance.now();
    crew.signalAll('SIGINT');
    expect(await crew.parent.ended).toMatchObject({ code: 130 });
    expect(performance.now() - at).toBeLessThan(promised(1_000));
  });
});
