import type { ProtectedList } from '../../src/input/spool.ts';
import { keys } from '../../src/redis/keys.ts';
import type { Definition, HistoryEntry } from '../../src/schedule/schedule.ts';
import { readHistory, addSchedule as storeDefinition } from '../../src/schedule/schedule-store.ts';
import { type AtEnd, type Harness, openHarness } from './harness.ts';
import { type Running, until } from './processes.ts';

/** Lists that are new each time: so many ids that begin with a word and the time. */
export function freshIds(word: string, count: number) {
  return { command: ['sh', '-c', `t=$(date +%s%N); seq -f "${word}-$t-%g" 1 ${count}`] };
}

/** A definition, every minute of UTC unless it says otherwise. */
export function aDefinition(more: Partial<Definition> = {}): Definition {
  return {
    cron: '* * * * *',
    tz: 'UTC',
    from: 'expired',
    overlap: 'skip',
    missed: 'none',
    maxDelayMs: 30_000,
    maxGrowth: 3,
    atMost: 0,
    retryFailed: false,
    maxActiveMs: 0,
    stopAt: '',
    definitions: '',
    settings: { resource: 'views', maxDeletes: '100' },
    heartbeat: '',
    note: 'OPS-1',
    ...more,
  };
}

/** Puts a schedule of a target into Redis, as it was added at a moment. */
export async function storeSchedule(
  { redis, target }: Pick<Harness, 'redis' | 'target'>,
  name: string,
  definition: Partial<Definition>,
  at: number,
  protectedList: ProtectedList | null = null,
): Promise<void> {
  const author = { at, by: 'operator', who: 'ana@test', reason: '', replace: true, protectedList } as const;
  await storeDefinition(redis, target.fp, name, aDefinition(definition), author);
}

/** Adds a schedule as an operator does. */
export async function addSchedule(harness: Harness, name: string, ...args: string[]): Promise<void> {
  const add = harness.spawn(['schedule', 'add', name, '--resource', 'annotations', '--max-deletes', '1000', ...args]);
  const { code } = await add.ended;
  if (code !== 0) throw new Error(`the schedule was not added: ${add.stderr}`);
}

/** Starts a worker that has these sources. */
export function workerWith(
  harness: Harness,
  file: string,
  sources: object,
  env: NodeJS.ProcessEnv = {},
  args: string[] = [],
): Promise<Running> {
  return harness.spawnWorker(args, {
    ...env,
    EXPUNGE_CONFIG: harness.file(file, JSON.stringify({ sources })),
  });
}

export type ScheduleWorkers = { harness: Harness; workers: Running[]; history(): Promise<HistoryEntry[]> };

/**
 * A schedule that is due every second, whose runs take 2.5 s, and so many workers, of which every second one defines its source in another way.
 */
export async function openScheduleWorkers(atEnd: AtEnd, count: number): Promise<ScheduleWorkers> {
  const harness = await openHarness(atEnd);
  await addSchedule(harness, 'often', '--cron', '* * * * * *', '--from', 'fresh', '--rate', '10/s', '--expect-absent');
  const start = (n: number) => workerWith(harness, `${n}.json`, { fresh: freshIds(n % 2 === 0 ? 'even' : 'odd', 25) });
  const workers = await Promise.all(Array.from({ length: count }, (_, n) => start(n)));
  return { harness, workers, history: () => readHistory(harness.redis, harness.target.fp, 'often') };
}

/** Waits until so many runs of the crowd have ended. */
export async function runsEnd({ harness }: ScheduleWorkers, count: number, deadlineMs?: number): Promise<void> {
  const ended = async () => (await harness.runs()).filter(({ state }) => state === 'completed').length >= count;
  await until(`${count} runs have ended`, ended, deadlineMs);
}

/** What shows that two runs were under way at once, or that an occurrence had two; null where nothing does. */
export async function findOverlap({ harness, history }: ScheduleWorkers): Promise<string | null> {
  const runs = (await harness.runs()).toSorted((a, b) => a.startedAt - b.startedAt);
  for (const [n, run] of runs.entries()) {
    const before = runs[n - 1];
    if (before !== undefined && run.startedAt < before.endedAt) return `${run.id} began before ${before.id} had ended`;
    if (before !== undefined && before.endedAt === 0) return `${run.id} began while ${before.id} was under way`;
  }
  const lists = harness.sandbox.seen.map((path) => /(even|odd)-\d+/.exec(path)?.[0] ?? path);
  const changes = lists.filter((list, n) => list !== lists[n - 1]);
  if (new Set(changes).size !== changes.length) return 'requests of two runs were mixed';
  const occurrences = (await history())
    .filter(({ outcome }) => outcome === 'started')
    .map(({ occurrence }) => occurrence);
  if (new Set(occurrences).size !== occurrences.length) return 'an occurrence had two runs';
  const made = await harness.redis.keys(keys.scheduleOccurrence(harness.target.fp, 'often', 0).replace(/0$/, '*'));
  return made.length >= runs.length ? null : `${runs.length} runs were made for ${made.length} occurrences`;
}
