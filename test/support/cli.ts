import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

/** How a command ended. */
export type Ended = { code: number | null; stdout: string; stderr: string };

export type CliOptions = {
  env?: NodeJS.ProcessEnv;
  cwd?: string;
  input?: string | Buffer; // all of its stdin
  typed?: readonly [afterText: string, text: string]; // written to stdin once stdout shows the first; stdin stays open
};

/** The program as node is started with it. */
export const bin = fileURLToPath(new URL('../../src/bin.js', import.meta.url));

/** Runs `expunge` with an environment of nothing but PATH, a terminal's name and what is given. */
export function expunge(args: string[], options: CliOptions = {}): Promise<Ended> {
  return start(process.execPath, [bin, ...args], options);
}

/** The same for another program, a shell for example. */
export function start(program: string, args: string[], options: CliOptions = {}): Promise<Ended> {
  const { env, cwd, input = '', typed } = options;
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { cwd, env: { PATH: process.env.PATH, TERM: 'xterm', ...env } });
    const ended: Ended = { code: null, stdout: '', stderr: '' };
    child.stdout.setEncoding('utf8'); // a character may come in two pieces
    child.stderr.setEncoding('utf8');
    let toType = typed;
    child.stdout.on('data', (chunk) => {
      ended.stdout += chunk;
      if (!toType || !ended.stdout.includes(toType[0])) return;
      child.stdin.write(toType[1]);
      toType = undefined;
    });
    child.stderr.on('data', (chunk) => {
      ended.stderr += chunk;
    });
    child.stdin.on('error', () => {}); // it may end without reading
    child.on('error', reject);
    child.on('close', (code) => resolve({ ...ended, code }));
    if (!typed) child.stdin.end(input);
  });
}
