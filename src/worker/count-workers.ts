import { count, plural, rate } from '../format.ts';

/** The facts that are known when a run starts. `asked`: `--workers`; `perSecond`: the lowest known rate, null = none is known. */
export type WorkerFacts = {
  asked: number | null;
  cores: number;
  freeBytes: number; // free memory
  ids: number; // remaining ids
  perSecond: number | null;
  maxConcurrency: number;
};

/** The number of processes that delete a run, including the command's, and the bound that decided it. */
type WorkerCount = { workers: number; reason: string };

const most = 4;
const idsEach = 100_000; // in the seconds that a process needs to start and to find its rate, it deletes fewer
const perSecondEach = 2_000; // a tenth of what a slow core sends
const connectionsEach = 8;
const bytesEach = 400 * 2 ** 20; // a process takes 230 MB at full speed

/** The number of processes of a foreground run: `asked`, or otherwise one for each core but one, four at most, while each has enough to do. Pure. */
export function countWorkers({ asked, cores, freeBytes, ids, perSecond, maxConcurrency }: WorkerFacts): WorkerCount {
  const bounds: WorkerCount[] =
    asked !== null
      ? [
          { workers: asked, reason: '--workers' },
          { workers: maxConcurrency, reason: `--max-concurrency ${maxConcurrency} is one request each` },
        ]
      : [
          { workers: most, reason: 'at most, without --workers' },
          { workers: cores - 1, reason: `${plural(cores, 'cores')}, one of them for Redis and everything else` },
          { workers: 1 + Math.floor(freeBytes / bytesEach), reason: 'memory for no more' },
          { workers: Math.floor(ids / idsEach), reason: `${count(ids)} ids keep no more busy` },
          { workers: Math.floor(maxConcurrency / connectionsEach), reason: `--max-concurrency ${maxConcurrency}` },
          ...(perSecond === null
            ? []
            : [{ workers: Math.ceil(perSecond / perSecondEach), reason: `enough for ${rate(perSecond)}` }]),
        ];
  const lowest = bounds.reduce((least, bound) => (bound.workers < least.workers ? bound : least));
  return { ...lowest, workers: Math.max(1, lowest.workers) };
}

/** The connections of one of the processes, counted from 1. Together they have as many as the run. */
export function connectionsOf(worker: number, workers: number, maxConcurrency: number): number {
  return Math.floor(maxConcurrency / workers) + (worker <= maxConcurrency % workers ? 1 : 0);
}
