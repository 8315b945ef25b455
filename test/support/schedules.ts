import type { ProtectedList } from '../../src/input/spool.ts';
import { keys } from '../../src/redis/keys.ts';
import type { Definition, HistoryEntry } from '../../src/schedule/schedule.ts';
import { readHistory, addSchedule as storeDefinition } from '../../src/schedule/schedule-store.ts';
import { type Running, until } from './processes.ts';
import { openScene, type Scene } from './scene.ts';

type AtEnd = Parameters<typeof openScene>[0];

/** Lists that are new each time: so many ids that begin with a word and the time. */
export function freshIds(word: string, count: number) {
  return { command: ['sh', '-c', `t=$(date +%s%N); seq -f "${word}-$t-%g" 1 ${count}`] };
}

/** A definition, every minute of UTC unless it says otherwise. */
export function aDefinition(more: Partial<Definition> = {}): Definition {
  return {
    ...{ cron: '* * * * *', tz: 'UTC', from: 'expired', overlap: 'skip', missed: 'none', graceMs: 30_000 },
    ...{
      maxGrowth: 3,
      allowEmpty: false,
      priority: 'normal',
      settings: { resource: 'views', maxDeletes: '100' },
      note: 'OPS-1',
    },
    ...more,
  };
}

/** Puts a schedule of a target into Redis, as it was added at a moment. */
export async function storeSchedule(
  { redis, target }: Pick<Scene, 'redis' | 'target'>,
  name: string,
  definition: Partial<Definition>,
  at: number,
  protectedList: ProtectedList | null = null,
): Promise<void> {
  const order = { at, by: 'operator', who: 'ana@test', reason: '', replace: true, protectedList } as const;
  await storeDefinition(redis, target.fp, name, aDefinition(definition), order);
}

/** Adds a schedule as an operator does. */
export async function addSchedule(scene: Scene, name: string, ...args: string[]): Promise<void> {
  const add = scene.expunge(['schedule', 'add', name, '--resource', 'annotations', '--max-deletes', '1000', ...args]);
  const { code } = await add.ended;
  if (code !== 0) throw new Error(`the schedule was not added: ${add.stderr}`);
}

/** Starts a worker that has these sources. */
export function workerWith(
  scene: Scene,
  file: string,
  sources: object,
  env: NodeJS.ProcessEnv = {},
  args: string[] = [],
): Promise<Running> {
  return scene.worker(args, {
    ...env,
    EXPUNGE_CONFIG: scene.file(file, JSON.stringify({ sources })),
  });
}

export type Crowd = { scene: Scene; workers: Running[]; history(): Promise<HistoryEntry[]> };

/**
 * A schedule that is due every second, whose runs take 2.5 s, and so many workers, of which every second one defines its source in another way.
 */
export async function openCrowd(atEnd: AtEnd, count: number): Promise<Crowd> {
  const scene = await openScene(atEnd);
  await addSchedule(scene, 'often', '--cron', '* * * * * *', '--from', 'fresh', '--rate', '10/s', '--expect-absent');
  const start = (n: number) => workerWith(scene, `${n}.json`, { fresh: freshIds(n % 2 === 0 ? 'even' : 'odd', 25) });
  const workers = await Promise.all(Array.from({ length: count }, (_, n) => start(n)));
  return { scene, workers, history: () => readHistory(scene.redis, scene.target.fp, 'often') };
}

/** Waits until so many runs of the crowd have ended. */
export async function runsEnd({ scene }: Crowd, count: number, deadlineMs: number): Promise<void> {
  const ended = async () => (await scene.runs()).filter(({ state }) => state === 'completed').length >= count;
  await until(`${count} runs have ended`, ended, deadlineMs);
}

/** What shows that two runs were under way at once, or that a slot had two; null where nothing does. */
export async function findOverlap({ scene, history }: Crowd): Promise<string | null> {
  const runs = (await scene.runs()).toSorted((a, b) => a.startedAt - b.startedAt);
  for (const [n, run] of runs.entries()) {
    const before = runs[n - 1];
    if (before !== undefined && run.startedAt < before.endedAt) return `${run.id} began before ${before.id} had ended`;
    if (before !== undefined && before.endedAt === 0) return `${run.id} began while ${before.id} was under way`;
  }
  const lists = scene.sandbox.seen.map((path) => /(even|odd)-\d+/.exec(path)?.[0] ?? path);
  const changes = lists.filter((list, n) => list !== lists[n - 1]);
  if (new Set(changes).size !== changes.length) return 'requests of two runs were mixed';
  const slots = (await history()).filter(({ outcome }) => outcome === 'started').map(({ slot }) => slot);
  if (new Set(slots).size !== slots.length) return 'a slot had two runs';
  const made = await scene.redis.keys(keys.scheduleSlot(scene.target.fp, 'often', 0).replace(/0$/, '*'));
  return made.length >= runs.length ? null : `${runs.length} runs were made for ${made.length} slots`;
}
