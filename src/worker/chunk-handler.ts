import { type DeleteDeps, deleteChunk } from '../delete/delete-chunk.ts';
import { ExpungeError, messageOf } from '../errors.ts';
import type { Ledger, ObservedState, Steering } from '../ledger/ledger.ts';
import { type HaltCode, readRun, schemaVersion } from '../ledger/run.ts';
import type { Log } from '../logger.ts';
import type { ChunkHandler } from '../queue/consumer.ts';
import type { ChunkJob } from '../queue/queue.ts';
import { describeRedisError } from '../redis/errors.ts';
import type { WriteStatus } from '../redis/writes.ts';
import type { Token } from '../token/token.ts';
import type { RunWatch } from './run-watch.ts';

type ChunkHandlerDeps = {
  work: DeleteDeps;
  watch: RunWatch;
  credentials: Credentials;
  /** Whether the leased chunks need more connections than there are. */
  isSaturated(): boolean;
  /** Nothing can be done for the run here. */
  drop(run: string, reason: string): void;
};

const resumeAdvice = 'bring its data back and resume, or cancel it';

/**
 * One pass over the chunk of a job, if the token is good and the run has use for another chunk in this process. Where room is short, only
 * runs get in of which no chunk is in hand: so each gets its share at once, however long the others are.
 */
export function chunkHandler({ work, watch, credentials, isSaturated, drop }: ChunkHandlerDeps): ChunkHandler {
  // Its chunk stays open meanwhile: if this process ends, the recoverer puts the job back.
  const postpone = ({ run, chunk }: ChunkJob, stop: AbortSignal) =>
    void setTimeout(() => stop.aborted || work.enqueue(run, [chunk]), watch.postponesMs(run)).unref();
  return async (job, stop) => {
    if (!(await credentials.areValid(job.run))) return 'done';
    if (isSaturated() && watch.hasChunks(job.run)) return 'requeue';
    if (!watch.isFull(job.run)) return deleteOne(job, stop, { work, watch, drop });
    postpone(job, stop);
    return 'done';
  };
}

async function deleteOne(
  { run, chunk }: ChunkJob,
  stop: AbortSignal,
  { work, watch, drop }: Pick<ChunkHandlerDeps, 'work' | 'watch' | 'drop'>,
): ReturnType<ChunkHandler> {
  const { gate, line, meter } = watch.enter(run);
  try {
    const { state, dueInMs } = await deleteChunk({ run, chunk, gate, requestQueue: line, meter, signal: stop }, work);
    work.log.debug({ run, chunk, state }, 'chunk returned');
    if (state === 'missing') drop(run, lostReason);
    if (state === 'other_release') drop(run, otherReleaseReason);
    if (state === 'broken') work.halt(run, 'ledger_lost', `Redis has lost chunk ${chunk} of it: ${resumeAdvice}`);
    return dueInMs === null ? 'done' : { dueInMs };
  } catch (error) {
    if (error instanceof ExpungeError) work.halt(run, 'ledger_lost', `${error.message}: ${resumeAdvice}`);
    else logRedisError(work, error);
    return 'done';
  } finally {
    watch.leave(run, gate);
  }
}

type Credentials = {
  /** False if the token was refused for good and still is: then the run has been halted. Asked before the work on each chunk. */
  areValid(run: string): Promise<boolean>;
};

type CredentialDeps = {
  /** There is another token. */
  changed(): void;
  /** The runs in hand. */
  runs(): string[];
  halt(run: string, code: HaltCode, reason: string): void;
};

/**
 * Halts the runs in hand once the token is refused for good. Whoever resumes one, or starts another, has a new try: the
 * credentials may have been mended.
 */
export function watchCredentials(token: Token, { changed, runs, halt }: CredentialDeps): Credentials {
  let refusal = '';
  token.onChange(changed);
  token.onRefused((reason) => {
    refusal = reason;
    for (const run of runs()) halt(run, 'credentials', reason);
  });
  return {
    areValid: async (run) => {
      if (refusal === '') return true;
      try {
        await token.start();
        refusal = '';
        return true;
      } catch (error) {
        halt(run, 'credentials', messageOf(error));
        return false;
      }
    },
  };
}

/** How the guards of this process stop runs: here at once, and in Redis for everybody else. */
export type RunStopper = {
  halt(run: string, code: HaltCode, reason: string): void;
  /** Tells of a halt by somebody else, or by the rules of the run. */
  halted(run: string): void;
  /** The server asked to wait for longer than anybody should without being asked. Whoever looks at the runs decides. */
  pauseAll(reason: string): void;
  /** Nothing of the run can be steered here: Redis has lost it, or another release has written it. */
  abandon(run: string, reason: string): void;
};

type RunStopperDeps = { ledger: Ledger; writes: WriteStatus; log: Log; watch(): RunWatch };

export function runStopper({ ledger, writes, log, watch }: RunStopperDeps): RunStopper {
  const dropped = new Set<string>(); // told of once
  const halting = new Set<string>(); // one halt for each run: hundreds of requests may notice the same thing
  const steer = (run: string, steering: Pick<Steering, 'action' | 'reason' | 'halt'>) =>
    ledger
      .steer(run, Date.now(), { ...steering, by: 'guard', who: '' })
      .then((states: [ObservedState, ObservedState]) => log.debug({ run, states }, 'stopped'))
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
      const found = await readRun(ledger.redis, run).catch(() => null); // it may be away again
      log.error({ run, code: found?.halt, reason: found?.reason ?? 'its status says why' }, 'the run has halted');
    },
    abandon: (run, reason) => {
      watch().close(run);
      if (dropped.has(run)) return;
      dropped.add(run);
      log.error({ run, reason }, 'abandoning the run');
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
export const lostReason =
  'Redis no longer knows it: its data were flushed, evicted or removed, or this is another database';

/** Why nothing is done for a run here. */
export const otherReleaseReason = `another release has written it, in a form other than ${schemaVersion}; workers of that release go on with it`;

/** Redis had trouble with something that is tried again anyway. */
export function logRedisError({ log, writes }: { log: Log; writes: WriteStatus }, error: unknown): void {
  if (!writes.failed(error)) log.warn({ reason: describeRedisError(error) }, 'Redis did not answer, retrying later');
}
