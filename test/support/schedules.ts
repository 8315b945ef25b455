import type { ProtectedList } from '../../src/input/spool.ts';
import type { Definition } from '../../src/schedule/schedule.ts';
import { addSchedule as storeDefinition } from '../../src/schedule/schedule-store.ts';
import type { Harness } from './harness.ts';
import type { Running } from './processes.ts';

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
