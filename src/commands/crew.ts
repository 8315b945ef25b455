import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { Log } from '../logger.ts';
import { keepCrew } from '../worker/crew.ts';

const bin = fileURLToPath(new URL('../bin.js', import.meta.url));
const numberVariable = 'EXPUNGE_WORKER';

/**
 * Runs so many workers as children of this process, each as this command would have been without `--workers`. They write to the same log.
 * However this process ends, they do: those it can't tell notice that it is gone, and drain.
 */
export async function leadCrew(size: number, stop: AbortSignal, log: Log): Promise<number> {
  const children = new Set<ChildProcess>();
  const killAll = () => {
    for (const child of children) child.kill('SIGKILL');
  };
  process.once('exit', killAll); // after a second signal: nothing is lost by that
  const start = (worker: number) => {
    const env = { ...process.env, [numberVariable]: String(worker) };
    const child = fork(bin, [...process.argv.slice(2), '--workers', '1'], { env });
    children.add(child);
    child.once('exit', () => children.delete(child));
    child.on('error', (error) => log.warn({ worker, reason: error.message }, 'the worker can not be told'));
    return child;
  };
  log.info({ workers: size }, 'starting the workers');
  try {
    return await keepCrew({ size, start, stop, log, random: Math.random });
  } finally {
    process.off('exit', killAll);
  }
}

/** Of a process that is one of a crew: its number, and when it shall drain. Null for all others. */
export type InCrew = { worker: number; leave: AbortSignal };

export function inCrew(env: NodeJS.ProcessEnv): InCrew | null {
  if (env[numberVariable] === undefined || process.send === undefined) return null;
  const leaving = new AbortController();
  const leave = () => leaving.abort();
  process.once('message', leave).once('disconnect', leave);
  if (!process.connected) leave();
  return { worker: Number(env[numberVariable]), leave: leaving.signal };
}
