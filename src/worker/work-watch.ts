import { needsWorkers } from '../ledger/list-runs.ts';
import type { Log } from '../logger.ts';
import type { Pulse } from '../pulse.ts';
import type { RedisClient } from '../redis/client.ts';
import { keys } from '../redis/keys.ts';
import { evenIfIdle, type Part, repeat } from './parts.ts';

const lookEveryMs = 2_000;

/**
 * The parts that tell the pulse of a worker that there is work. A run that needs workers is work. So is, for a minute, each change that an idle
 * worker has to know within two seconds: of the runs of its target, and of the actions for the target and its schedules, which all move a revision. If
 * Redis does not answer, anything may have changed. The consumer notes a job by itself.
 */
export function workWatch(redis: RedisClient, fp: string, log: Log): Part[] {
  return [
    changeWatch(redis, fp, log),
    repeat(
      'live runs',
      lookEveryMs,
      async (pulse) => {
        if (await needsWorkers(redis, fp)) pulse.wake();
      },
      log,
    ),
  ];
}

/** Two reads in one round trip. */
function changeWatch(redis: RedisClient, fp: string, log: Log): Part {
  let seen = '';
  const look = async (pulse: Pulse) => {
    const now = await readState(redis, fp).catch(() => 'unknown');
    if (now !== seen || now === 'unknown') pulse.wake();
    seen = now;
  };
  return evenIfIdle(repeat('changes', lookEveryMs, look, log));
}

async function readState(redis: RedisClient, fp: string): Promise<string> {
  const revisions = [keys.targetRevision(fp), keys.schedulesRevision(fp)];
  const [[target, schedules], runs] = await Promise.all([redis.mget(revisions), redis.smembers(keys.targetRuns(fp))]);
  return [target ?? '', schedules ?? '', ...runs.sort()].join(' ');
}
