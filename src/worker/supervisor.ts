import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { exitCodes, messageOf } from '../errors.ts';
import type { Log } from '../logger.ts';
import { sleepUntilAborted } from '../wait.ts';
import { waitAfterMs } from './backoff.ts';

type SupervisorOptions = {
  /** The number of workers. */
  size: number;
  /** Starts the process of the worker with this number, counted from 1, with an IPC channel. */
  start(worker: number): ChildProcess;
  /** Aborted when all workers have to drain. */
  stop: AbortSignal;
  log: Log;
  /** Returns a number from 0 to 1. */
  random: () => number;
};

/** How a process ended. */
type ProcessExit = { code: number | null; signal: NodeJS.Signals | null };

/** The system had no process for it, for example for lack of memory. */
const notStarted: ProcessExit = { code: null, signal: null };

const drainMs = 11_700; // a worker has ended by then, or hangs
const restartWaits = { firstMs: 1_000, maxMs: 30_000 };
const stableAfterMs = 60_000; // a worker that ran this long started without a problem

/** Exit codes after which a restart does not help. */
const fatalExits: readonly (number | null)[] = [
  exitCodes.USAGE.exit,
  exitCodes.CREDENTIALS.exit,
  exitCodes.UNREACHABLE.exit, // a worker waits for a Redis that is away, so it ends like this only if waiting does not help
];

/**
 * Keeps worker processes running, each with its number: a worker that exits is restarted. All drain when `stop` is aborted, or when a worker exits
 * with a code that a restart does not change. Returns the exit code: a fatal code if there is one, otherwise the first that isn't 0, otherwise 0.
 */
export async function superviseWorkers(options: SupervisorOptions, sleep = sleepUntilAborted): Promise<number> {
  const { size, start, stop, log, random } = options;
  const fatal = new AbortController();
  const draining = AbortSignal.any([stop, fatal.signal]);
  const startWorker = (worker: number): ChildProcess | null => {
    try {
      return start(worker);
    } catch (error) {
      log.warn({ worker, reason: messageOf(error) }, 'a worker could not be started');
      return null;
    }
  };
  const runWorker = async (worker: number): Promise<ProcessExit> => {
    const child = startWorker(worker);
    if (child === null) return notStarted;
    const drain = () => drainChild(child, () => log.warn({ worker }, 'the worker did not drain in time, killing it'));
    draining.addEventListener('abort', drain, { once: true });
    const [code, signal] = await once(child, 'exit').catch(() => [null, null]); // as `notStarted`
    draining.removeEventListener('abort', drain);
    return { code, signal };
  };
  const superviseWorker = async (worker: number): Promise<number> => {
    for (let failures = 0; !draining.aborted; ) {
      const startedAt = performance.now();
      const end = await runWorker(worker);
      if (draining.aborted) return end.code ?? exitCodes.INTERNAL.exit;
      failures = performance.now() - startedAt > stableAfterMs ? 1 : failures + 1;
      const reason = describeExit(worker, end);
      if (fatalExits.includes(end.code)) {
        log.error({ worker, ...end }, 'a worker cannot run, stopping all workers');
        fatal.abort();
        return end.code!;
      }
      const againInMs = restartAfterMs(failures, random());
      log.warn({ worker, ...end, againInMs, reason }, 'a worker exited unexpectedly, restarting it');
      await sleep(againInMs, draining);
    }
    return 0;
  };
  const codes = await Promise.all(Array.from({ length: size }, (_, n) => superviseWorker(n + 1)));
  return codes.find((code) => fatalExits.includes(code)) ?? codes.find((code) => code !== 0) ?? 0;
}

function describeExit(worker: number, { code, signal }: ProcessExit): string {
  const how = signal !== null ? `ended by ${signal}` : code === null ? 'not started' : `exit code ${code}`;
  return `worker ${worker}, ${how}`;
}

/** The wait before a restart, in ms: 500 to 1000 before the first, twice as long before each further one, 30,000 at most. */
export function restartAfterMs(failures: number, random: number): number {
  return Math.round(waitAfterMs(restartWaits, failures, random));
}

/** Drains a child with a message instead of a signal: a terminal or a service manager sends its signals to the children as well. */
function drainChild(child: ChildProcess, onLate: () => void): void {
  child.send('drain', () => {}); // fails if the process has exited
  const timer = setTimeout(() => {
    onLate();
    child.kill('SIGKILL');
  }, drainMs);
  child.once('exit', () => clearTimeout(timer));
}
