import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readSources } from '../../../src/config/list-source.ts';
import type { ProtectedList } from '../../../src/input/spool.ts';
import { removeRun } from '../../../src/ledger/end-run.ts';
import { openLedger } from '../../../src/ledger/ledger.ts';
import { listRuns } from '../../../src/ledger/list-runs.ts';
import { type Run, readRun } from '../../../src/ledger/run.ts';
import { haltRules } from '../../../src/ledger/thresholds.ts';
import { type Target, targetOf } from '../../../src/model/target.ts';
import { createFeeder } from '../../../src/queue/feeder.ts';
import { openQueue, sharedQueueName } from '../../../src/queue/queue.ts';
import type { RedisClient } from '../../../src/redis/client.ts';
import { openQueueConnection } from '../../../src/redis/connect.ts';
import { keys } from '../../../src/redis/keys.ts';
import { reconcile } from '../../../src/schedule/reconcile.ts';
import type { Definition, HistoryEntry, Schedule } from '../../../src/schedule/schedule.ts';
import { readHistory, readSchedule, type ScheduleDeps } from '../../../src/schedule/schedule-store.ts';
import { openTestRedis, testRedisAddress } from '../../support/redis.ts';
import { storeSchedule } from '../../support/schedules.ts';

type AtEnd = (task: () => Promise<void>) => void;

/** A schedule `nightly` of a target of its own, a folder for its lists, and a clock that the test sets. No worker deletes anything. */
export type ScheduleHarness = {
  redis: RedisClient;
  target: Target;
  folder: string;
  work: ScheduleDeps;
  /** What the log was told, line by line. */
  told: string[];
  now: number;
  file(name: string, content: string): string;
  /** Writes the list that the source `expired` gives. */
  list(ids: string[]): void;
  add(definition?: Partial<Definition>, protectedList?: ProtectedList): Promise<void>;
  /** Sets the clock and attends to the schedule, as a worker would that hears its bell. */
  at(time: number, work?: Partial<ScheduleDeps>): Promise<void>;
  schedule(): Promise<Schedule>;
  history(): Promise<HistoryEntry[]>;
  runs(): Promise<Run[]>;
  /** Ends a run as its workers would, were all of its ids gone. */
  finish(run: string): Promise<void>;
};

export const start = Date.parse('2027-01-01T12:00Z');
export const minute = 60_000;

export async function openScheduleHarness(atEnd: AtEnd): Promise<ScheduleHarness> {
  const redis = await openTestRedis();
  const target = targetOf('http://127.0.0.1:9', randomUUID());
  const folder = mkdtempSync(join(tmpdir(), 'expunge-schedule-'));
  const connection = openQueueConnection(testRedisAddress());
  const queue = openQueue({ fp: target.fp, name: sharedQueueName, connection });
  const ledger = openLedger(redis, haltRules);
  const told: string[] = [];
  const tell = (facts: object, message: string) => void told.push(`${message} ${JSON.stringify(facts)}`);
  const file = (name: string, content: string) => {
    writeFileSync(join(folder, name), content);
    return join(folder, name);
  };
  const work: ScheduleDeps = {
    ...{
      ledger,
      target,
      feeder: createFeeder(ledger, queue),
      log: { debug: tell, info: tell, warn: tell, error: tell },
    },
    ...{
      sources: readSources({ expired: { command: ['cat', join(folder, 'list')] } }),
      env: { PATH: process.env.PATH },
    },
    ...{ stateDir: join(folder, 'state'), protectFile: null, proxy: null, allowHttp: undefined, who: 'worker@test' },
    now: () => stage.now,
    wait: async () => {},
  };
  const runs = async () => {
    const listed = (await listRuns(redis)).filter(({ account }) => account === target.account).toReversed();
    const read = await Promise.all(listed.map(({ id }) => readRun(redis, id)));
    return read.filter((run) => run !== null);
  };
  atEnd(async () => {
    await queue.close();
    for (const run of await runs()) await removeRun(redis, run);
    for await (const found of redis.scanStream({ match: `expunge:{${target.fp}}:*`, count: 1_000 }))
      if ((found as string[]).length > 0) await redis.unlink(...(found as string[]));
    redis.disconnect();
    rmSync(folder, { recursive: true, force: true });
  });
  const stage: ScheduleHarness = {
    ...{ redis, target, folder, work, told, now: start, file, runs },
    list: (ids) => void file('list', ids.map((id) => `${id}\n`).join('')),
    add: (definition = {}, protectedList) => storeSchedule(stage, 'nightly', definition, stage.now, protectedList),
    at: async (time, more) => {
      stage.now = time;
      await reconcile({ ...work, ...more }, 'nightly', new AbortController().signal);
    },
    schedule: async () => (await readSchedule(redis, target.fp, 'nightly'))!,
    history: () => readHistory(redis, target.fp, 'nightly'),
    finish: async (run) => {
      await redis.hset(keys.run(run), { state: 'completed', sealed: stage.now, endedAt: stage.now, tallied: 1 });
    },
  };
  return stage;
}

/** `count` ids that no other call gives. */
export function someIds(name: string, count: number): string[] {
  return Array.from({ length: count }, (_, n) => `${name}-${n}`);
}
