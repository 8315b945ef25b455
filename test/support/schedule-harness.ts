import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { readSources } from '../../src/config/list-source.ts';
import type { ProtectedList } from '../../src/input/spool.ts';
import { openLedger } from '../../src/ledger/ledger.ts';
import { type Run, readRun } from '../../src/ledger/run.ts';
import type { OutcomeCounts } from '../../src/model/outcome.ts';
import { createEnqueuer } from '../../src/queue/enqueuer.ts';
import { openQueue } from '../../src/queue/queue.ts';
import { sharedQueueName } from '../../src/queue/queues.ts';
import { openQueueConnection } from '../../src/redis/connect.ts';
import { keys } from '../../src/redis/keys.ts';
import { reconcile } from '../../src/schedule/reconcile.ts';
import type { Definition, HistoryEntry, Schedule } from '../../src/schedule/schedule.ts';
import { readHistory, readSchedule, type ScheduleDeps } from '../../src/schedule/schedule-store.ts';
import { type AtEnd, type Harness, type HarnessOptions, openHarness } from './harness.ts';
import { testRedisAddress } from './redis.ts';
import { storeSchedule } from './schedules.ts';

/** The harness with a schedule `nightly`, and a clock that the test sets. No worker deletes anything. */
export type ScheduleHarness = Harness & {
  work: ScheduleDeps;
  /** What the log was told, line by line. */
  told: string[];
  now: number;
  add(definition?: Partial<Definition>, protectedList?: ProtectedList): Promise<void>;
  /** Sets the clock and attends to the schedule, as a worker would in its next check. */
  at(time: number, work?: Partial<ScheduleDeps>): Promise<void>;
  schedule(): Promise<Schedule>;
  history(): Promise<HistoryEntry[]>;
  /** Ends a run as its workers would: by default all of its ids were deleted. */
  finish(run: string, counts?: Partial<OutcomeCounts>): Promise<void>;
};

export const start = Date.parse('2027-01-01T12:00Z');
export const minute = 60_000;

/** Its lists are what the source `expired` gives; its runs come in the order in which they were made. */
export async function openScheduleHarness(atEnd: AtEnd, options: HarnessOptions = {}): Promise<ScheduleHarness> {
  const harness = await openHarness(null, options);
  const { redis, target, folder } = harness;
  const connection = openQueueConnection(testRedisAddress());
  const queue = openQueue({ fp: target.fp, name: sharedQueueName, connection });
  atEnd(async () => {
    await queue.close();
    await harness.close();
  });
  const ledger = openLedger(redis);
  const told: string[] = [];
  const tell = (facts: object, message: string) => void told.push(`${message} ${JSON.stringify(facts)}`);
  const work: ScheduleDeps = {
    ledger,
    target,
    enqueuer: createEnqueuer(ledger, queue),
    log: { debug: tell, info: tell, warn: tell, error: tell },
    sources: readSources({ expired: { command: ['cat', join(folder, 'list')] } }),
    env: { PATH: process.env.PATH },
    stateDir: harness.stateDir,
    protectFile: null,
    proxy: null,
    allowHttp: undefined,
    who: 'worker@test',
    now: () => stage.now,
    syncClock: async () => {},
    wait: async () => {},
  };
  const stage: ScheduleHarness = {
    ...harness,
    work,
    told,
    now: start,
    runs: async (): Promise<Run[]> => (await harness.runs()).toReversed(),
    list: (ids) => {
      writeFileSync(join(folder, 'list'), ids.map((id) => `${id}\n`).join(''));
      return join(folder, 'list');
    },
    add: (definition = {}, protectedList) => storeSchedule(stage, 'nightly', definition, stage.now, protectedList),
    at: async (time, more) => {
      stage.now = time;
      await reconcile({ ...work, ...more }, 'nightly', new AbortController().signal);
    },
    schedule: async () => (await readSchedule(redis, target.fp, 'nightly'))!,
    history: () => readHistory(redis, target.fp, 'nightly'),
    finish: async (run, counts) => {
      const ended = { state: 'completed', finalized: stage.now, endedAt: stage.now, tallied: 1 };
      const { ids } = (await readRun(redis, run))!;
      await redis.hset(keys.run(run), { ...ended, ...(counts ?? { deleted: ids }) });
    },
  };
  return stage;
}

/** `count` ids that no other call gives. */
export function someIds(name: string, count: number): string[] {
  return Array.from({ length: count }, (_, n) => `${name}-${n}`);
}
