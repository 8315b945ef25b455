import type { ForkOptions } from 'node:child_process';
import { withoutOwnSecrets } from '../child-process.ts';
import type { Run } from '../ledger/run.ts';
import { type Log, logFor } from '../logger.ts';
import type { Target } from '../model/target.ts';
import { isTerminal } from '../terminal/style.ts';
import { connectionsOf } from '../worker/count-workers.ts';
import { RunWorkers, type WorkerOrder } from '../worker/run-workers.ts';
import type { Invocation } from './command.ts';
import type { Credentials } from './credentials.ts';
import { numberVariable, openForks } from './fork-workers.ts';
import { type EarlySession, sayOn } from './session.ts';

type RunWorkersDeps = {
  invocation: Invocation;
  session: EarlySession;
  target: Target;
  credentials: Credentials;
  run: Run;
  /** How many processes delete, that of the command included. */
  workers: number;
  /** Shows a warning of one of them. */
  tell(line: string): void;
};

/** The processes that delete a run beside its command. `kill` ends those that do not drain; `dispose` when all is over. */
export function openRunWorkers(deps: RunWorkersDeps): { workers: RunWorkers; kill(): void; dispose(): void } {
  const { invocation, credentials, run, workers: all, tell } = deps;
  const { env, verbosity } = invocation;
  const forks = openForks();
  const optionsFor = (worker: number): ForkOptions => ({
    env: { ...withoutOwnSecrets(env), REDIS_URL: env.REDIS_URL ?? '', [numberVariable]: String(worker) },
    // Nothing may be written into the panel; with --verbose there is none.
    stdio: ['ignore', 'ignore', verbosity === 'verbose' ? 'inherit' : 'pipe', 'ipc'],
  });
  const flags = verbosity === 'verbose' ? ['--verbose'] : [];
  const workers = new RunWorkers({
    size: all - 1,
    fork: (worker) => forks.fork(['run-worker', run.id, ...flags], optionsFor(worker)),
    orderFor: (worker) => orderFor(deps, worker),
    token: credentials.token,
    tell,
    log: supervisorLog(deps),
    random: Math.random,
  });
  return { workers, kill: forks.kill, dispose: forks.dispose };
}

/** The settings of the command, with a part of its connections. The private Redis is that of the command, which keeps it running. */
function orderFor(
  { invocation, session, target, credentials, run, workers }: RunWorkersDeps,
  worker: number,
): WorkerOrder {
  const { config } = invocation;
  const { kind, label, options } = session.address;
  const maxConcurrency = connectionsOf(worker + 1, workers, config.maxConcurrency);
  return {
    ...{ worker, run: run.id, target, ca: credentials.ca },
    config: { ...config, maxConcurrency },
    redis: kind === 'private' ? { kind, label, options } : null,
  };
}

/** Where there is no panel, which shows it as an event, the end of a worker is a line of its own. */
function supervisorLog({ invocation: { verbosity, stderr, env }, tell }: RunWorkersDeps): Log {
  const isShown = verbosity === 'quiet' || isTerminal(stderr, env);
  return logFor(verbosity, stderr, isShown ? tell : sayOn(stderr));
}
