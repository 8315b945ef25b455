import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Readable } from 'node:stream';
import { describeProgramError, systemCode } from './system-errors.ts';

/** A command that the operator configured: its output is read, it gets no input. */
export type Child = ChildProcessByStdio<null, Readable, Readable>;

/** Variables that may hold secrets of expunge, which no child process gets. */
const ownSecrets = [
  'REDIS_URL',
  'EXPUNGE_TOKEN',
  'EXPUNGE_SERVER_TOKEN',
  'EXPUNGE_CLIENT_SECRET',
  'EXPUNGE_RESULTS',
  'EXPUNGE_RESULTS_HEADERS',
  'EXPUNGE_NOTIFY',
  'EXPUNGE_NOTIFY_SECRET',
  'EXPUNGE_TOKEN_COMMAND',
  'EXPUNGE_TOKEN_URL',
  'EXPUNGE_PROXY',
];

/** The environment of child processes: all variables but our own secrets, since they may need the others to find their servers. */
export function withoutOwnSecrets(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !ownSecrets.includes(name)));
}

/** Starts a command in a process group of its own, so that `endChild` also reaches the processes that it has started. */
export function startChild(program: string, args: readonly string[], env: NodeJS.ProcessEnv): Child {
  const child = spawn(program, args, {
    env: withoutOwnSecrets(env),
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  child.on('error', () => {}); // reported by `awaitExit`
  return child;
}

/** Kills a command and its process group. A process that left the group survives, but its output is not read. Repeating it is harmless. */
export function endChild({ pid, stdout, stderr }: Child): void {
  try {
    if (pid !== undefined) process.kill(-pid, 'SIGKILL');
  } catch {
    // It has already ended.
  }
  stdout.destroy();
  stderr.destroy();
}

/** Describes how a command ended; '' for exit code 0. Its output may still be open, because another process can hold it. Never throws. */
export async function awaitExit(child: Child): Promise<string> {
  try {
    const [code, signal] = await once(child, 'exit');
    return code === 0 ? '' : signal ? `was ended by ${signal}` : `ended with ${code}`;
  } catch (error) {
    return `cannot be started: ${describeProgramError(error)}`;
  }
}

/** Whether a process with this pid exists, of any user. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return systemCode(error) === 'EPERM';
  }
}
