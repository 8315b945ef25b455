import type { Run } from '../../src/ledger/run.ts';
import { findBroken } from './checker.ts';
import { type AtEnd, type Harness, type OwnRedis, openHarness } from './harness.ts';
import { annotations, makeIds } from './ids.ts';
import { openProbes } from './probes.ts';
import { type Running, until } from './processes.ts';
import { openReceiver, type ReceiverServer } from './receiver.ts';
import { addSchedule, freshIds, workerWith } from './schedules.ts';

export type Use = {
  atEnd: AtEnd;
  redis: OwnRedis;
  /** Ids of the run that is held against the sandbox. */
  ids: number;
  /** Whether a worker is killed in the middle: it takes a while until another one has its chunk. */
  kill: boolean;
};

/** `broken`: the promise that the run broke, if any. */
export type Used = { broken: string | null; run: Run; seconds: number };

type Context = Use & {
  harness: Harness;
  /** Gets results and events. */
  receiver: ReceiverServer;
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
const slowSeconds = 20; // of the whole run, until all actions are taken

/**
 * Does all that the command can do with one Redis: a schedule that rings, a run of two workers, every action, reports, probes, and an end
 * by expiry, by removal and by cancelling.
 */
export async function useEverything(use: Use): Promise<Used> {
  const context = await openContext(use);
  const workers = await Promise.all([context.start(), context.start()]);
  await useSchedule(context);
  const used = await useRun(context, workers);
  await useReports(context, used.run.id);
  await useReceiver(context, used.run.id);
  await useEnds(context, used.run.id);
  return used;
}

async function openContext(use: Use): Promise<Context> {
  const list = makeIds('a', use.ids);
  const objects = annotations([...list, ...bystanders]);
  const harness = await openHarness(use.atEnd, { objects, faults }, use.redis);
  const call: Context['call'] = async (...args) => {
    const running = harness.start(args, settings);
    const { code } = await running.ended;
    if (code !== 0 && code !== 3) throw new Error(`expunge ${args.join(' ')} ended with ${code}: ${running.stderr}`);
    return running;
  };
  let lists = 0;
  const submit: Context['submit'] = async (ids, ...more) => {
    const file = harness.file(`list-${lists++}.txt`, `${ids.join('\n')}\n`);
    const { stdout } = await call('run', file, '--resource', 'annotations', '--yes', '--json', ...more);
    return JSON.parse(stdout.trimEnd().split('\n').at(-1)!).run;
  };
  const receiver = await openReceiver(use.atEnd);
  const args = ['--http', '0', '--results', receiver.url, '--notify', receiver.url];
  const start = () => workerWith(harness, 'config.json', { fresh: freshIds('bell', 5) }, settings, args);
  return { ...use, harness, receiver, list, call, submit, start };
}

async function useSchedule({ harness, call }: Context): Promise<void> {
  await addSchedule(harness, 'bell', '--cron', '* * * * * *', '--from', 'fresh', '--expect-absent');
  await until('a bell has made a run', async () => (await harness.runs()).length > 0, soonMs);
  await call('schedule', 'pause', 'bell', '--reason', 'enough');
  await call('schedule', 'list');
  await call('schedule', 'remove', 'bell', '--yes');
  const areOver = async () => (await harness.runs()).every(({ state }) => state === 'completed');
  await until('its runs are over', areOver, soonMs);
}

/** In the middle of it everything is stopped, and the run itself is paused; a worker may be killed. */
async function useRun(context: Context, [first, second]: Running[]): Promise<Used> {
  const { harness, list, kill, call, submit, start } = context;
  const before = harness.sandbox.seen.length;
  const startedAt = performance.now();
  const id = await submit(list, '--detach', '--rate', `${list.length / slowSeconds}/s`);
  const now = async () => (await harness.runs()).find((run) => run.id === id)!;
  await until('a tenth is settled', async () => (await now()).settled >= list.length / 10, soonMs);
  if (kill) first!.signal('SIGKILL');
  await call('stop-all', '--reason', 'they call us');
  await call('pause', id, '--reason', 'a moment');
  await Promise.all([call('rate', id, 'none'), call('status', id, '--audit')]);
  await useProbes(second!);
  if (kill) await start();
  await call('start-all');
  await call('resume', id);
  await until('it is completed', async () => (await now()).state === 'completed', 15 * soonMs);
  const seconds = (performance.now() - startedAt) / 1_000;
  const run = await now();
  const sandbox = { ...harness.sandbox, seen: harness.sandbox.seen.slice(before) };
  const broken = await findBroken({ ...harness, sandbox, run, resource: 'annotations', ids: list, bystanders });
  return { broken, run, seconds };
}

async function useProbes(worker: Running): Promise<void> {
  const { readiness, scrape } = await openProbes(worker);
  const [{ ready }, scraped] = await Promise.all([readiness(), scrape()]);
  if (!ready || scraped.value('expunge_redis_up') !== 1) throw new Error('the worker does not see its Redis');
}

async function useReports({ call, list }: Context, run: string): Promise<void> {
  await Promise.all([call('report', run), call('report', run, '--verify'), call('runs'), call('check')]);
  await Promise.all([call('report', run, '--only', 'failed'), call('explain', 'annotations', list[0]!)]);
}

async function useReceiver({ receiver }: Context, run: string): Promise<void> {
  const isThere = () => receiver.files().has(`/${run}/summary.json`);
  await until('its results are delivered', isThere, soonMs);
  const isTold = () => receiver.received.some(({ body }) => body.includes('run.completed') && body.includes(run));
  await until('its end is told', isTold, soonMs);
}

async function useEnds({ call, submit }: Context, run: string): Promise<void> {
  await call('stop-all');
  const cancelled = await submit(makeIds('cancelled', 20), '--detach');
  await call('cancel', cancelled, '--yes');
  await call('start-all');
  await call('retry', cancelled, '--yes', '--expect-absent');
  await submit(makeIds('here', 20), '--expect-absent', '--keep', '1s');
  await call('runs', 'remove', run, '--yes');
}
