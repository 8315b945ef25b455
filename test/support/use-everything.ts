import type { Run } from '../../src/ledger/run.ts';
import { findBroken } from './checker.ts';
import { openProbes } from './probes.ts';
import { type Running, until } from './processes.ts';
import { annotations, makeIds, openScene, type Scene, type SceneRedis } from './scene.ts';
import { addSchedule, freshIds, workerWith } from './schedules.ts';

export type Use = {
  atEnd: Parameters<typeof openScene>[0];
  redis: SceneRedis;
  /** Ids of the run that is held against the sandbox. */
  ids: number;
  /** Whether a worker is killed in the middle: it takes a while until another one has its chunk. */
  kill: boolean;
};

/** `broken`: the promise that the run broke, if any. */
export type Used = { broken: string | null; run: Run; seconds: number };

type Stage = Use & {
  scene: Scene;
  list: string[];
  /** Runs a command to its end. Throws unless that was with 0, or with 3 for ids that failed on purpose. */
  call(...args: string[]): Promise<Running>;
  /** The id of a run that is submitted. */
  submit(ids: string[], ...more: string[]): Promise<string>;
  start(): Promise<Running>;
};

const bystanders = makeIds('bystander', 20);
const faults = { 'status-503': 0.005, 'status-503-executed': 0.005, 'status-409': 0.002, 'reset-executed': 0.002 };
const settings = { EXPUNGE_RETRY_DELAYS: '200ms,200ms,200ms,200ms,200ms', EXPUNGE_MAX_CONCURRENCY: '32' };
const soonMs = 60_000;
const slowSeconds = 20; // of the whole run, until all orders are given

/**
 * Does all that the command can do with one Redis: a schedule that rings, a run of two workers, every order, reports, probes, and an end
 * by expiry, by removal and by cancelling.
 */
export async function useEverything(use: Use): Promise<Used> {
  const stage = await openStage(use);
  const workers = await Promise.all([stage.start(), stage.start()]);
  await useBell(stage);
  const used = await useRun(stage, workers);
  await useReports(stage, used.run.id);
  await useEnds(stage, used.run.id);
  return used;
}

async function openStage(use: Use): Promise<Stage> {
  const list = makeIds('a', use.ids);
  const objects = annotations([...list, ...bystanders]);
  const scene = await openScene(use.atEnd, { objects, faults }, use.redis);
  const call: Stage['call'] = async (...args) => {
    const running = scene.expunge(args, settings);
    const { code } = await running.ended;
    if (code !== 0 && code !== 3) throw new Error(`expunge ${args.join(' ')} ended with ${code}: ${running.stderr}`);
    return running;
  };
  let lists = 0;
  const submit: Stage['submit'] = async (ids, ...more) => {
    const file = scene.file(`list-${lists++}.txt`, `${ids.join('\n')}\n`);
    const { stdout } = await call('run', file, '--resource', 'annotations', '--yes', '--json', ...more);
    return JSON.parse(stdout.trimEnd().split('\n').at(-1)!).run;
  };
  const start = () => workerWith(scene, 'config.json', { fresh: freshIds('bell', 5) }, settings, ['--http', '0']);
  return { ...use, scene, list, call, submit, start };
}

async function useBell({ scene, call }: Stage): Promise<void> {
  await addSchedule(scene, 'bell', '--cron', '* * * * * *', '--from', 'fresh', '--expect-absent');
  await until('a bell has made a run', async () => (await scene.runs()).length > 0, soonMs);
  await call('schedule', 'pause', 'bell', '--reason', 'enough');
  await call('schedule', 'list');
  await call('schedule', 'remove', 'bell', '--yes');
  const areOver = async () => (await scene.runs()).every(({ state }) => state === 'completed');
  await until('its runs are over', areOver, soonMs);
}

/** In the middle of it everything is stopped, and the run itself is paused; a worker may be killed. */
async function useRun(stage: Stage, [first, second]: Running[]): Promise<Used> {
  const { scene, list, kill, call, submit, start } = stage;
  const before = scene.sandbox.seen.length;
  const startedAt = performance.now();
  const id = await submit(list, '--detach', '--rate', `${list.length / slowSeconds}/s`);
  const now = async () => (await scene.runs()).find((run) => run.id === id)!;
  await until('a tenth is settled', async () => (await now()).settled >= list.length / 10, soonMs);
  if (kill) first!.signal('SIGKILL');
  await call('stop-all', '--reason', 'they call us');
  await call('pause', id, '--reason', 'a moment');
  await Promise.all([call('rate', id, 'none'), call('priority', id, 'high'), call('status', id, '--audit')]);
  await useProbes(second!);
  if (kill) await start();
  await call('start-all');
  await call('resume', id);
  await until('it is completed', async () => (await now()).state === 'completed', 15 * soonMs);
  const seconds = (performance.now() - startedAt) / 1_000;
  const run = await now();
  const sandbox = { ...scene.sandbox, seen: scene.sandbox.seen.slice(before) };
  const broken = await findBroken({ ...scene, sandbox, run, resource: 'annotations', ids: list, bystanders });
  return { broken, run, seconds };
}

async function useProbes(worker: Running): Promise<void> {
  const { readiness, scrape } = await openProbes(worker);
  const [{ ready }, scraped] = await Promise.all([readiness(), scrape()]);
  if (!ready || scraped.value('expunge_redis_up') !== 1) throw new Error('the worker does not see its Redis');
}

async function useReports({ call }: Stage, run: string): Promise<void> {
  await Promise.all([call('report', run), call('report', run, '--verify'), call('runs'), call('check')]);
}

async function useEnds({ call, submit }: Stage, run: string): Promise<void> {
  await call('stop-all');
  await call('cancel', await submit(makeIds('cancelled', 20), '--detach'), '--yes');
  await call('start-all');
  await submit(makeIds('here', 20), '--expect-absent', '--keep', '1s');
  await call('runs', 'remove', run, '--yes');
}
