import type { Ledger, Steering } from '../ledger/ledger.ts';
import { type HaltCode, readRun, schemaVersion } from '../ledger/run.ts';
import type { Log } from '../logger.ts';
import { describeRedisError } from '../redis/errors.ts';
import type { WriteStatus } from '../redis/writes.ts';
import type { RunWatch } from './run-watch.ts';

/** Stops runs for the guards of this process: here at once, and in Redis for the other processes. None of the methods throws or is awaited. */
type RunStopper = {
  /** Halts a run. Repeating it while the first call is under way does nothing. */
  halt(run: string, code: HaltCode, reason: string): void;
  /** Logs that another process, or a rule of the run, has halted it. */
  halted(run: string): void;
  /** Pauses all runs with chunks here: the server asked for a wait above the limit, so an operator decides. */
  pauseAll(reason: string): void;
  /** Stops work on a run that Redis has lost or that another version has written: its state cannot be changed here. */
  abandon(run: string, reason: string): void;
};

type RunStopperDeps = { ledger: Ledger; writes: WriteStatus; log: Log; watch(): RunWatch };

export function runStopper({ ledger, writes, log, watch }: RunStopperDeps): RunStopper {
  const abandoned = new Set<string>(); // logged once
  const halting = new Set<string>(); // one halt for each run, as hundreds of requests may have the same cause
  const steer = (run: string, steering: Pick<Steering, 'action' | 'reason' | 'halt'>) =>
    ledger
      .steer(run, Date.now(), { ...steering, by: 'guard', who: '' })
      .then(({ before, after }) => log.debug({ run, states: [before, after] }, 'run state changed'))
      .catch((error) => logRedisError({ log, writes }, error));
  return {
    halt: (run, code, reason) => {
      watch().close(run);
      if (halting.has(run)) return;
      halting.add(run);
      log.error({ run, code, reason }, 'halting the run');
      void steer(run, { action: 'halt', reason, halt: code }).finally(() => halting.delete(run));
    },
    halted: async (run) => {
      const found = await readRun(ledger.redis, run).catch(() => null); // Redis may be away again
      log.error({ run, code: found?.halt, reason: found?.reason ?? 'its status says why' }, 'the run has halted');
    },
    abandon: (run, reason) => {
      watch().close(run);
      if (abandoned.has(run)) return;
      abandoned.add(run);
      log.error({ run, reason }, 'skipping the run');
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

/** The reason for abandoning a run that Redis has lost. */
export const lostReason =
  'Redis no longer knows it: its data were flushed, evicted or removed, or this is another database';

/** The reason for abandoning a run that another version has written. */
export const otherVersionReason = `another version of expunge has written it, in a form other than ${schemaVersion}; workers of that version continue it`;

/** The reason for abandoning a run one of whose resources this process defines in another way. `why`: how, in words. */
export function otherDefinitionReason(why: string): string {
  return `${why}; workers with the definition of the run continue it`;
}

/** Logs an error of Redis in an operation that is retried anyway. `writes` logs rejected writes. */
export function logRedisError({ log, writes }: { log: Log; writes: WriteStatus }, error: unknown): void {
  if (!writes.failed(error)) log.warn({ reason: describeRedisError(error) }, 'Redis did not answer, retrying later');
}
