import { execFile } from 'node:child_process';
import { withoutOwnSecrets } from '../child-process.ts';
import { programWords } from '../system-words.ts';

/** How a program ended. `stderr` also tells why it could not be started or that its time was up. */
export type ProgramResult = { ok: boolean; stdout: string; stderr: string };

type ProgramOptions = { env: NodeJS.ProcessEnv; deadlineMs: number; cwd?: string };

/** Runs a program to its end without a shell, without input and without our secrets. Never rejects; killed at the deadline. */
export function runProgram(
  program: string,
  args: string[],
  { env, deadlineMs, cwd }: ProgramOptions,
): Promise<ProgramResult> {
  const options = {
    env: withoutOwnSecrets(env),
    cwd,
    timeout: deadlineMs,
    killSignal: 'SIGKILL',
    maxBuffer: 2 ** 24,
  } as const;
  return new Promise((resolve) => {
    const child = execFile(program, args, options, (error, stdout, stderr) => {
      if (!error) return resolve({ ok: true, stdout, stderr });
      const why = error.killed ? `no end after ${deadlineMs / 1000} s` : stderr || startError(program, error.code);
      resolve({ ok: false, stdout, stderr: why });
    });
    child.stdin?.end();
  });
}

function startError(program: string, code: unknown): string {
  if (code === 'ENOENT') return `${program} not found`;
  return typeof code === 'string'
    ? `${program}: ${programWords({ code })}`
    : `${program} ended with ${code ?? 'a signal'}`;
}

/** The last line that says something: what a program prints when it gives up. */
export function lastLine(text: string): string {
  return text.trim().split('\n').at(-1)?.trim() ?? '';
}
