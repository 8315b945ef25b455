import { type ChildProcess, spawn } from 'node:child_process';
import { systemCode } from '../errors.ts';

/** How a command ended: `trouble` says in words what is wrong with it, '' where it ended well. */
export type CommandEnd = { trouble: string; isTimeOut: boolean; stdout: string; stderr: string };

const deadlineMs = 30_000;
const outputAtMost = 65_536;

/**
 * Runs a line by `sh -c`, without input, to its end: at most 30 s and 64 KiB of output, then it and what it started are killed, and
 * so they are when `closing` aborts. Never rejects.
 */
export function runShell(line: string, env: NodeJS.ProcessEnv, closing: AbortSignal): Promise<CommandEnd> {
  // A process group of its own, so that the time-out reaches what the shell started.
  const child = spawn('sh', ['-c', line], { env, stdio: ['ignore', 'pipe', 'pipe'], detached: true });
  const end: CommandEnd = { trouble: '', isTimeOut: false, stdout: '', stderr: '' };
  const stop = (trouble: string) => {
    end.trouble ||= trouble;
    killGroup(child);
  };
  const timer = setTimeout(() => {
    end.isTimeOut = true;
    stop(`gave no token in ${deadlineMs / 1_000} s`);
  }, deadlineMs);
  const close = () => stop('was stopped');
  closing.addEventListener('abort', close, { once: true });
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (text: string) => {
      if (end[name].length + text.length > outputAtMost) stop('prints too much');
      else end[name] += text;
    });
  }
  return new Promise((resolve) => {
    child.once('error', (error) => {
      end.trouble ||= `cannot be started (${systemCode(error)})`;
    });
    child.once('close', (code, signal) => {
      clearTimeout(timer);
      closing.removeEventListener('abort', close);
      if (code !== 0) end.trouble ||= signal ? `was ended by ${signal}` : `ended with ${code}`;
      resolve(end);
    });
  });
}

function killGroup({ pid }: ChildProcess): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // It has ended meanwhile.
  }
}
