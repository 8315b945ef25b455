import { type DeleteWork, deleteChunk } from '../delete/delete-chunk.ts';
import { ExpungeError } from '../errors.ts';
import type { ChunkHandler } from '../queue/consumer.ts';
import type { ChunkJob } from '../queue/queue.ts';
import type { Credentials } from './credentials.ts';
import type { RunWatch } from './run-watch.ts';
import { logTrouble, lostWords, otherReleaseWords } from './stop-runs.ts';

type HandlerDeps = {
  work: DeleteWork;
  watch: RunWatch;
  credentials: Credentials;
  /** Whether the chunks in hand want more room than there is. */
  isCrowded(): boolean;
  /** Nothing can be done for the run here. */
  drop(run: string, reason: string): void;
};

const repair = 'bring its data back and resume, or cancel it';

/**
 * One pass over the chunk of a job, if the token is good and the run has use for another chunk in this process. Where room is short, only
 * runs get in of which no chunk is in hand: so each gets its share at once, however long the others are.
 */
export function chunkHandler({ work, watch, credentials, isCrowded, drop }: HandlerDeps): ChunkHandler {
  // Its chunk stays open meanwhile: if this process ends, the tender brings the job back.
  const postpone = ({ run, chunk }: ChunkJob, stop: AbortSignal) =>
    void setTimeout(() => stop.aborted || work.fed(run, [chunk]), watch.postponesMs(run)).unref();
  return async (job, stop) => {
    if (!(await credentials.areGood(job.run))) return 'done';
    if (isCrowded() && watch.isAtWork(job.run)) return 'put back';
    if (!watch.isFull(job.run)) return deleteIt(job, stop, { work, watch, drop });
    postpone(job, stop);
    return 'done';
  };
}

async function deleteIt(
  { run, chunk }: ChunkJob,
  stop: AbortSignal,
  { work, watch, drop }: Pick<HandlerDeps, 'work' | 'watch' | 'drop'>,
): ReturnType<ChunkHandler> {
  const { gate, line, meter } = watch.enter(run);
  try {
    const { state, dueInMs } = await deleteChunk({ run, chunk, gate, line, meter, stop }, work);
    work.log.debug({ run, chunk, state }, 'chunk left');
    if (state === 'missing') drop(run, lostWords);
    if (state === 'other_release') drop(run, otherReleaseWords);
    if (state === 'broken') work.halt(run, 'ledger_lost', `Redis has lost chunk ${chunk} of it: ${repair}`);
    return dueInMs === null ? 'done' : { dueInMs };
  } catch (error) {
    if (error instanceof ExpungeError) work.halt(run, 'ledger_lost', `${error.message}: ${repair}`);
    else logTrouble(work, error);
    return 'done';
  } finally {
    watch.leave(run, gate);
  }
}
