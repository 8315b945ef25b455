import type { SandboxOptions } from '../../src/sandbox/server.ts';
import { type AtEnd, type Harness, openHarness } from './harness.ts';
import { annotations, makeIds } from './ids.ts';
import { type Running, until } from './processes.ts';
import { watchTicks } from './rate-measures.ts';

export type FleetOptions = {
  /** Ids of the run: enough for as long as the test looks. */
  ids: number;
  /** Worker processes; 0 = the run deletes in its own process. */
  workers: number;
  /** The limit of the target. */
  limit?: string;
  runArgs?: string[];
  settings?: NodeJS.ProcessEnv;
  sandbox?: SandboxOptions;
};

/** A run of one target, the processes that work on it, and when the server was awake. */
export type Fleet = {
  harness: Harness;
  ids: readonly string[];
  /** Those that delete. */
  processes: readonly Running[];
  ticks: readonly number[];
  /** When the first request arrived, by `performance.now()`. */
  startedMs: number;
};

/** Starts workers and a detached run for them, or a run that deletes by itself; returns when the first request has arrived. */
export async function openFleet(atEnd: AtEnd, options: FleetOptions): Promise<Fleet> {
  const ids = makeIds('f', options.ids);
  const harness = await openHarness(atEnd, { objects: annotations(ids), ...options.sandbox });
  return startFleet(atEnd, harness, ids, options);
}

/** The same in a harness that is there already. */
export async function startFleet(
  atEnd: AtEnd,
  harness: Harness,
  ids: string[],
  { workers, limit, runArgs = [], settings = {} }: Omit<FleetOptions, 'ids' | 'sandbox'>,
): Promise<Fleet> {
  const { atMs } = harness.sandbox.arrivals;
  const before = atMs.length;
  if (limit !== undefined) await harness.limit(limit);
  const all = await Promise.all(Array.from({ length: workers }, () => harness.spawnWorker([], settings)));
  const { ticks, stop } = watchTicks();
  atEnd(async () => stop());
  const running = await startRun(harness, ids, workers > 0 ? ['--detach', ...runArgs] : runArgs, settings);
  await until('the first request arrives', () => atMs.length > before);
  return { harness, ids, processes: workers > 0 ? all : [running], ticks, startedMs: atMs[before]! };
}

let lists = 0;

/** Starts a run over these ids; a detached one has been submitted when this returns. */
export async function startRun(
  harness: Harness,
  ids: readonly string[],
  args: string[] = [],
  settings: NodeJS.ProcessEnv = {},
): Promise<Running> {
  const list = harness.file(`list-${lists++}.txt`, `${ids.join('\n')}\n`);
  const isDetached = args.includes('--detach'); // then nothing is left to do in a process of its own
  const start = isDetached ? harness.start : harness.spawn;
  const running = start(['run', list, '--resource', 'annotations', '--yes', ...args], settings);
  if (!isDetached) return running;
  const { code } = await running.ended;
  if (code !== 0) throw new Error(`the run was not submitted: ${running.stderr}`);
  return running;
}

/** Waits until so many ms after a moment; the sandbox goes on meanwhile. */
export async function passed(fromMs: number, ms: number): Promise<void> {
  const left = fromMs + ms - performance.now();
  if (left > 0) await until(`${ms} ms have passed`, () => performance.now() >= fromMs + ms, left + 10_000);
}
