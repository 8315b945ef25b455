import { type Run, readRun } from '../../src/ledger/run.ts';
import { keys } from '../../src/redis/keys.ts';
import { summaryIn } from './command.ts';
import type { Harness } from './harness.ts';
import { openTestRedis } from './redis.ts';

/** A detached run of one view that nobody works on; its id. */
export async function liveRun(harness: Harness, list: string, ...more: string[]): Promise<string> {
  harness.file(`${list}.csv`, `id\n${list}\n`);
  return summaryIn(await harness.run([`${list}.csv`, '--resource', 'views', '--detach', '--yes', '--json', ...more]))
    .run;
}

/** A run, its own rate as it is stored, and what was done to it, the latest first. */
export async function recordOf(run: string) {
  const redis = await openTestRedis();
  try {
    const audit = (await redis.lrange(keys.audit(run), 0, -1)).map((entry) => JSON.parse(entry));
    const stored = await redis.hget(keys.run(run), 'rate');
    return { run: (await readRun(redis, run)) as Run, stored, audit };
  } finally {
    redis.disconnect();
  }
}
