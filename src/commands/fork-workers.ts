import { type ChildProcess, type ForkOptions, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';

/** Tells a process that it was started by another one, and its number. */
export const numberVariable = 'EXPUNGE_WORKER';

const bin = fileURLToPath(new URL('../bin.js', import.meta.url));

/** Processes of this program that end with this one at the latest. */
export type Forks = {
  /** Starts one with these arguments and an IPC channel. */
  fork(args: readonly string[], options: ForkOptions): ChildProcess;
  /** Kills those that are left. Nothing is lost by that. */
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
