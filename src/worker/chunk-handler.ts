import { type DeleteDeps, deleteChunk } from '../delete/delete-chunk.ts';
import { ExpungeError, messageOf } from '../errors.ts';
import type { HaltCode } from '../ledger/run.ts';
import type { ChunkHandler } from '../queue/consumer.ts';
import type { ChunkJob } from '../queue/queue.ts';
import type { Token } from '../token/token.ts';
import { logRedisError, lostReason, otherDefinitionReason, otherVersionReason } from './run-stopper.ts';
import type { RunWatch } from './run-watch.ts';

type HandlerDeps = {
  deleting: DeleteDeps;
  watch: RunWatch;
  credentials: Credentials;
  /** The actions for runs that this process knows. `confirm` makes sure that Redis has all of them before a chunk is claimed. */
  actions: { confirm(run: string): Promise<void> };
  /** Whether the leased chunks need more connections than there are. */
  isSaturated(): boolean;
  /** Stops work on a run that this process cannot delete. */
  abandon(run: string, reason: string): void;
};

const resumeAdvice = 'bring its data back and resume, or cancel it';

/**
 * Does one pass over the chunk of a job, if the token is valid and the run can use another chunk in this process. While room is short, only runs
 * without a leased chunk are admitted. So each run gets its share at once, however long the other passes take.
 */
export function chunkHandler({
  deleting,
  watch,
  credentials,
  actions,
  isSaturated,
  abandon,
}: HandlerDeps): ChunkHandler {
  // The chunk stays open in the meantime: if this process ends, the recoverer adds its job again.
  const postpone = ({ run, chunk }: ChunkJob, stop: AbortSignal) =>
    void setTimeout(() => stop.aborted || deleting.addJobs(run, [chunk]), watch.postponesMs(run)).unref();
  return async (job, stop) => {
    if (!(await credentials.areValid(job.run))) return 'done';
    try {
      await actions.confirm(job.run);
    } catch (error) {
      logRedisError(deleting, error);
      return 'requeue';
    }
    if (isSaturated() && watch.hasChunks(job.run)) return 'requeue';
    if (!watch.isFull(job.run)) return deleteOne(job, stop, { deleting, watch, abandon });
    postpone(job, stop);
    return 'done';
  };
}

async function deleteOne(
  { run, chunk }: ChunkJob,
  stop: AbortSignal,
  { deleting, watch, abandon }: Pick<HandlerDeps, 'deleting' | 'watch' | 'abandon'>,
): ReturnType<ChunkHandler> {
  const { gate, requestQueue, meter, refusals, firstAnswers } = watch.enter(run);
  try {
    const { state, dueInMs } = await deleteChunk(
      { run, chunk, gate, requestQueue, meter, refusals, firstAnswers, signal: stop },
      deleting,
    );
    deleting.log.debug({ run, chunk, state }, 'chunk returned');
    if (state === 'missing') abandon(run, lostReason);
    if (state === 'other_version') abandon(run, otherVersionReason);
    if (state === 'other_definition') abandon(run, otherDefinitionReason(await deleting.ledger.describeMisfit(run)));
    if (state === 'broken') deleting.halt(run, 'ledger_lost', `Redis has lost chunk ${chunk} of it: ${resumeAdvice}`);
    return dueInMs === null ? 'done' : { dueInMs };
  } catch (error) {
    if (error instanceof ExpungeError) deleting.halt(run, 'ledger_lost', `${error.message}: ${resumeAdvice}`);
    else logRedisError(deleting, error);
    return 'done';
  } finally {
    watch.leave(run, gate);
  }
}

type Credentials = {
  /** Called before each chunk. Returns false if the token is still rejected for good; then the run is halted. Never throws. */
  areValid(run: string): Promise<boolean>;
};

type CredentialDeps = {
  /** Called when there is another token. */
  changed(): void;
  /** The runs with leased chunks. */
  runs(): string[];
  halt(run: string, code: HaltCode, reason: string): void;
};

/**
 * Halts the runs with leased chunks once the token is rejected for good. The next chunk of a run asks for a token again, because an operator may have
 * replaced the credentials.
 */
export function watchCredentials(token: Token, { changed, runs, halt }: CredentialDeps): Credentials {
  let rejection = '';
  token.onChange(changed);
  token.onRefused((reason) => {
    rejection = reason;
    for (const run of runs()) halt(run, 'credentials', reason);
  });
  return {
    areValid: async (run) => {
      if (rejection === '') return true;
      try {
        await token.start();
        rejection = '';
        return true;
      } catch (error) {
        halt(run, 'credentials', messageOf(error));
        return false;
      }
    },
  };
}
