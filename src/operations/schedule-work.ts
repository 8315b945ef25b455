import { setTimeout as sleep } from 'node:timers/promises';
import type { Config } from '../config/settings.ts';
import type { Log } from '../logger.ts';
import type { Target } from '../model/target.ts';
import type { Enqueuer } from '../queue/enqueuer.ts';
import { openRedisClock } from '../redis/clock.ts';
import { keys } from '../redis/keys.ts';
import type { ScheduleDeps } from '../schedule/schedule-store.ts';
import type { By } from './action.ts';
import type { Session } from './session.ts';

/** What the lists of schedules are read with: the sources and files of this machine. */
export type SchedulePlace = { config: Config; env: NodeJS.ProcessEnv; log: Log };

type Context = { session: Session; place: SchedulePlace; target: Target; enqueuer: Enqueuer; by: By };

/** The dependencies for reconciling schedules. */
export function scheduleWork({ session, place, target, enqueuer, by }: Context): ScheduleDeps {
  const { config, env, log } = place;
  const clock = openRedisClock(session.redis, keys.schedules(target.fp));
  return {
    ledger: session.ledger,
    target,
    enqueuer,
    log,
    env,
    sources: config.sources,
    stateDir: config.stateDir,
    protectFile: config.protect ?? null,
    proxy: config.proxy ?? null,
    allowHttp: config.allowHttp,
    who: by.who,
    reason: by.reason,
    now: clock.now,
    syncClock: clock.sync,
    wait: async (ms, stop) => void (await sleep(ms, undefined, { signal: stop })),
  };
}
