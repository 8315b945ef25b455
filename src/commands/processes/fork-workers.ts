import { type ChildProcess, type ForkOptions, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { withoutOwnSecrets } from '../../child-process.ts';
import type { Run } from '../../ledger/run.ts';
import { type Log, logFor } from '../../logger.ts';
import type { Target } from '../../model/target.ts';
import type { EarlySession } from '../../operations/session.ts';
import { isTerminal } from '../../terminal/style.ts';
import { connectionsOf } from '../../worker/count-workers.ts';
import { RunWorkers, type WorkerOrder } from '../../worker/run-workers.ts';
import type { Invocation } from '../command.ts';
import type { Credentials } from '../credentials.ts';
import { sayOn } from '../session.ts';

/** The variable that marks a process as a worker started by another process, and gives its number. */
export const numberVariable = 'EXPUNGE_WORKER';

const bin = fileURLToPath(new URL('../../bin.js', import.meta.url));

/** Child processes of this program, which end with this process at the latest. */
type Forks = {
  /** Starts a child with these arguments and an IPC channel. */
  fork(args: readonly string[], options: ForkOptions): ChildProcess;
  /** Kills the children that are left. Nothing is lost by that. */
  kill(): void;
  dispose(): void;
};

export function openForks(): Forks {
  const children = new Set<ChildProcess>();
  const kill = () => {
    for (const child of children) child.kill('SIGKILL');
  };
  process.once('exit', kill); // after a second signal
  return {
    fork: (args, options) => {
      const child = fork(bin, args, options);
      children.add(child);
      child.once('exit', () => children.delete(child));
      return child;
    },
    kill,
    dispose: () => process.off('exit', kill),
  };
}

type RunWorkersDeps = {
  invocation: Invocation;
  session: EarlySession;
  target: Target;
  credentials: Credentials;
  run: Run;
  /** Number of processes that delete, including the command. */
  workers: number;
  /** Shows a warning of a worker. */
  tell(line: string): void;
  /** Shows the status of a worker. */
  say(line: string): void;
};

/** The processes that delete a run together with its command. `kill` ends those that do not drain; call `dispose` when all is over. */
export function openRunWorkers(deps: RunWorkersDeps): { workers: RunWorkers; kill(): void; dispose(): void } {
  const { invocation, credentials, run, workers: all, tell, say } = deps;
  const { env, verbosity } = invocation;
  const forks = openForks();
  const optionsFor = (worker: number): ForkOptions => ({
    env: { ...withoutOwnSecrets(env), REDIS_URL: env.REDIS_URL ?? '', [numberVariable]: String(worker) },
    // Workers must not write into the panel; with --verbose there is none.
    stdio: ['ignore', 'ignore', verbosity === 'verbose' ? 'inherit' : 'pipe', 'ipc'],
  });
  const flags = verbosity === 'verbose' ? ['--verbose'] : [];
  const workers = new RunWorkers({
    size: all - 1,
    fork: (worker) => forks.fork(['run-worker', run.id, ...flags], optionsFor(worker)),
    orderFor: (worker) => orderFor(deps, worker),
    token: credentials.token,
    tell,
    say,
    log: supervisorLog(deps),
    random: Math.random,
  });
  return { workers, kill: forks.kill, dispose: forks.dispose };
}

/** The settings of the command, with a share of its connections. The worker uses the private Redis of the command, which keeps it running. */
function orderFor(
  { invocation, session, target, credentials, run, workers }: RunWorkersDeps,
  worker: number,
): WorkerOrder {
  const { config } = invocation;
  const { kind, label, options } = session.address;
  const maxConcurrency = connectionsOf(worker + 1, workers, config.maxConcurrency);
  return {
    worker,
    run: run.id,
    target,
    ca: credentials.ca,
    config: { ...config, maxConcurrency },
    redis: kind === 'private' ? { kind, label, options } : null,
  };
}

/** A log that writes the end of a worker as a line if there is no panel, which would show it as an event. */
function supervisorLog({ invocation, tell }: RunWorkersDeps): Log {
  const { verbosity, stderr, env } = invocation;
  const isShown = verbosity === 'quiet' || isTerminal(stderr, env);
  return logFor(invocation, isShown ? tell : sayOn(stderr));
}
