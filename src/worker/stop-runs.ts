import type { Ledger, SeenState, Steering } from '../ledger/ledger.ts';
import { type HaltCode, readRun, schemaVersion } from '../ledger/run.ts';
import type { Log } from '../logger.ts';
import { redisWords } from '../redis/errors.ts';
import type { Writes } from '../redis/writes.ts';
import type { RunWatch } from './run-watch.ts';

/** How the guards of this process stop runs: here at once, and in Redis for everybody else. */
export type RunStopper = {
  halt(run: string, code: HaltCode, reason: string): void;
  /** Tells of a halt by somebody else, or by the rules of the run. */
  halted(run: string): void;
  /** The server asked to wait for longer than anybody should without being asked. Whoever looks at the runs decides. */
  pauseAll(reason: string): void;
  /** Nothing of the run can be steered here: Redis has lost it, or another release has written it. */
  drop(run: string, reason: string): void;
};

type StopperDeps = { ledger: Ledger; writes: Writes; log: Log; watch(): RunWatch };

export function runStopper({ ledger, writes, log, watch }: StopperDeps): RunStopper {
  const dropped = new Set<string>(); // told of once
  const halting = new Set<string>(); // one halt for each run: hundreds of requests may notice the same thing
  const steer = (run: string, steering: Pick<Steering, 'action' | 'reason' | 'halt'>) =>
    ledger
      .steer(run, Date.now(), { ...steering, by: 'guard', who: '' })
      .then((states: [SeenState, SeenState]) => log.debug({ run, states }, 'stopped'))
      .catch((error) => logTrouble({ log, writes }, error));
  return {
    halt: (run, code, reason) => {
      watch().close(run);
      if (halting.has(run)) return;
      halting.add(run);
      log.error({ run, code, reason }, 'halting the run');
      void steer(run, { action: 'halt', reason, halt: code }).finally(() => halting.delete(run));
    },
    halted: async (run) => {
      const found = await readRun(ledger.redis, run).catch(() => null); // it may be away again
      log.error({ run, code: found?.halt, reason: found?.reason ?? 'its status says why' }, 'the run has halted');
    },
    drop: (run, reason) => {
      watch().close(run);
      if (dropped.has(run)) return;
      dropped.add(run);
      log.error({ run, reason }, 'leaving the run');
    },
    pauseAll: (reason) => {
      for (const run of watch().runs) {
        watch().close(run);
        log.warn({ run, reason }, 'pausing the run');
        void steer(run, { action: 'pause', reason });
      }
    },
  };
}

/** Why nothing more can be done for a run. */
export const lostWords =
  'Redis no longer knows it: its data were flushed, evicted or removed, or this is another database';

/** Why nothing is done for a run here. */
export const otherReleaseWords = `another release has written it, in a form other than ${schemaVersion}; workers of that release go on with it`;

/** Redis had trouble with something that is tried again anyway. */
export function logTrouble({ log, writes }: { log: Log; writes: Writes }, error: unknown): void {
  if (!writes.failed(error)) log.warn({ reason: redisWords(error) }, 'Redis did not answer, trying again later');
}
