import { rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { countAttempts, isDoubtful, isSettled } from '../../src/ledger/cell.ts';
import { keys } from '../../src/redis/keys.ts';
import { findBroken } from './checker.ts';
import { type Fleet, startFleet } from './fleet.ts';
import { type AtEnd, type Harness, openHarness } from './harness.ts';
import { annotations, makeIds } from './ids.ts';
import { until } from './processes.ts';

/** One way to stop everything, and to let it go on. `stop` returns when it began to be true, by `performance.now()`. */
type StopMethod = { stop(): Promise<number>; lift(): Promise<void> };

/** What was seen of one stop. Times in ms after it. */
type StopSeen = {
  lastAfterMs: number; // the last request that arrived
  wentOnAfterMs: number; // after it was lifted
  words: string; // what `status` said meanwhile
};

/** `trouble`: what is wrong with the ledger, or null. */
export type KillSwitchResult = { byCommand: StopSeen; byFile: StopSeen; problem: string | null };

const quietMs = 1_000;

export type KillSwitchUse = {
  /** 0: a run in its own process. */
  workers: number;
  ids: number;
  /** The rate of the run; half of that must have got through before it is stopped. */
  perSecond: number;
};

/** Stops a fleet by `stop-all`, and then by a file. */
export async function useKillSwitch(atEnd: AtEnd, use: KillSwitchUse): Promise<KillSwitchResult> {
  const { workers, ids: count, perSecond } = use;
  const ids = makeIds('k', count);
  const harness = await openHarness(atEnd, { objects: annotations(ids) });
  const rate = `${perSecond}/s`;
  const settings = { EXPUNGE_STOP_FILE: stopFileOf(harness) };
  const args = workers > 0 ? { limit: rate } : { runArgs: ['--rate', rate] };
  const fleet = await startFleet(atEnd, harness, ids, { workers, settings, ...args });
  const byCommand = await useOnce(fleet, command(harness), perSecond / 2);
  const byFile = await useOnce(fleet, file(harness), perSecond / 2);
  const run = await harness.runIs('completed', ({ state }) => state === 'completed');
  const broken = await findBroken({ ...harness, run, resource: 'annotations', ids, bystanders: [] });
  const wasted = run.attempts === count ? null : `${run.attempts} attempts for ${count} ids`;
  return { byCommand, byFile, problem: broken ?? wasted };
}

function stopFileOf({ stateDir }: Harness): string {
  return join(dirname(stateDir), 'stop');
}

function command({ expunge, redis, target }: Harness): StopMethod {
  const call = async (command: string) => {
    const { code, stderr } = await expunge([command, '--reason', 'they call us'], { env: { EXPUNGE_USER: 'ana' } });
    if (code !== 0) throw new Error(`${command} failed: ${stderr}`);
  };
  return {
    stop: async () => {
      await call('stop-all');
      // When the command itself gave its action: it took a while to start, and to end.
      return JSON.parse((await redis.get(keys.stop(target.fp)))!).at - performance.timeOrigin;
    },
    lift: () => call('start-all'),
  };
}

function file(harness: Harness): StopMethod {
  return {
    stop: async () => {
      harness.file('stop', 'they call us\n');
      return performance.now();
    },
    lift: async () => rmSync(stopFileOf(harness)),
  };
}

async function useOnce({ harness }: Fleet, { stop, lift }: StopMethod, before: number): Promise<StopSeen> {
  const { arrivals } = harness.sandbox;
  const { length } = arrivals.atMs;
  await until('it is in the middle', () => arrivals.atMs.length > length + before);
  const at = await stop();
  // How long after the stop the last one came is for the test to judge: a machine that others use delays what was already on its way.
  await until('nothing arrives any more', () => performance.now() > Math.max(at, arrivals.atMs.at(-1)!) + quietMs);
  const words = await statusOf(harness);
  await checkLedger(harness);
  const lastAfterMs = Math.round(arrivals.atMs.at(-1)! - at);
  const sent = arrivals.atMs.length;
  await lift();
  const liftedAt = performance.now();
  await until('it goes on', () => arrivals.atMs.length > sent);
  return { lastAfterMs, wentOnAfterMs: Math.round(performance.now() - liftedAt), words };
}

async function statusOf(harness: Harness): Promise<string> {
  return (await harness.expunge(['status', (await harness.onlyRun()).id])).stdout;
}

/** The run is still running, and what it held has been returned: no id has lost an attempt, or is in doubt. */
async function checkLedger(harness: Harness): Promise<void> {
  const run = await harness.onlyRun();
  if (run.state !== 'running') throw new Error(`the run is ${run.state}`);
  const open = (await harness.cells()).flat().filter((cell) => !isSettled(cell));
  if (open.length === 0) throw new Error('the run was not in the middle');
  if (open.some((cell) => countAttempts(cell) > 0)) throw new Error('an id lost an attempt');
  if (open.some((cell) => isDoubtful(cell) || ((cell >> 4) & 1) === 1)) throw new Error('an id was left in doubt');
}
