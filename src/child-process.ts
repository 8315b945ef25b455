import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Readable } from 'node:stream';
import { describeProgramError } from './system-errors.ts';

/** A command of the operator's: it prints something, and gets no input. */
export type Child = ChildProcessByStdio<null, Readable, Readable>;

/** Variables that hold secrets of ours, or may: they are for this process alone. */
const ownSecrets = [
  'REDIS_URL',
  'EXPUNGE_TOKEN',
  'EXPUNGE_CLIENT_SECRET',
  'EXPUNGE_TOKEN_COMMAND',
  'EXPUNGE_TOKEN_URL',
  'EXPUNGE_PROXY',
];

/** What programs get that we start: everything else, since they may need it to find their own servers and secrets. */
export function withoutOwnSecrets(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !ownSecrets.includes(name)));
}

/** Starts a command in a process group of its own, so that an end reaches what it has started. */
export function startChild(program: string, args: readonly string[], env: NodeJS.ProcessEnv): Child {
  const child = spawn(program, args, {
    env: withoutOwnSecrets(env),
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  child.on('error', () => {}); // told by `exitOf`
  return child;
}

/** Kills it and what it has started. What has left its group and holds its output is left alone: nobody reads that any more. */
export function endChild({ pid, stdout, stderr }: Child): void {
  try {
    if (pid !== undefined) process.kill(-pid, 'SIGKILL');
  } catch {
    // It has ended meanwhile.
  }
  stdout.destroy();
  stderr.destroy();
}

/** How it ended by itself, in words; '' = with 0. Says nothing of its output, which something else may hold open for as long as it likes. */
export async function exitOf(child: Child): Promise<string> {
  try {
    const [code, signal] = await once(child, 'exit');
    return code === 0 ? '' : signal ? `was ended by ${signal}` : `ended with ${code}`;
  } catch (error) {
    return `cannot be started: ${describeProgramError(error)}`;
  }
}
