import { type ChildProcess, type ForkOptions, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';

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
