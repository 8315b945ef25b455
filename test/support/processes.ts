import { type ChildProcess, spawn } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

/** How a process ended; `code` is null where a signal ended it. */
export type Ended = { code: number | null; signal: NodeJS.Signals | null };

/** How one ended and all that it printed. */
export type Done = { code: number | null; stdout: string; stderr: string };

/** A process of ours, with what it has said so far. */
export type Running = {
  readonly pid: number;
  readonly stdout: string;
  readonly stderr: string;
  readonly isOver: boolean;
  ended: Promise<Ended>;
  signal(signal: NodeJS.Signals): void;
};

/** Where programs run: a test may remove the folder in which this process is. */
const root = fileURLToPath(new URL('../..', import.meta.url));

/** The program as it is shipped; whoever runs the tests has it built. */
export const bin = fileURLToPath(new URL('../../dist/bin.js', import.meta.url));

/** Starts the command as a user does. `stdin` keeps its input open, for the caller to write to. */
export function startExpunge(
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  stdin: NodeJS.ReadableStream | null = null,
): Running {
  return startNode([bin, ...args], env, stdin);
}

/** Starts a script with the Node of the tests, in the folder of the repository and with no environment but the given one. */
export function startNode(args: string[], env: NodeJS.ProcessEnv, stdin: NodeJS.ReadableStream | null = null): Running {
  const options = { cwd: root, env: { PATH: process.env.PATH, ...env } };
  const child = spawn(process.execPath, args, { ...options, stdio: [stdin ? 'pipe' : 'ignore', 'pipe', 'pipe'] });
  if (stdin) stdin.pipe(child.stdin!).on('error', () => {}); // it may be killed while it reads
  return follow(child);
}

/** What a process that tests start can do without; `careless.ts` takes it out. */
export type Forgotten = 'marks' | 'doubt' | 'patience' | 'distance';

const careless = new URL('careless.ts', import.meta.url).href;

/** The environment of a process without these. */
export function without(...what: readonly Forgotten[]) {
  return { NODE_OPTIONS: `--import=${careless}`, CARELESS: what.join() };
}

/** Starts a program with no environment but the given one, as the first of a process group: -pid names all that it starts. */
export function startProgram(program: string, args: string[], env: NodeJS.ProcessEnv, cwd = root): Running {
  return follow(spawn(program, args, { env, cwd, detached: true, stdio: ['ignore', 'pipe', 'pipe'] }));
}

export type ProgramOptions = {
  env?: NodeJS.ProcessEnv;
  cwd?: string;
  input?: string | Buffer; // all of its stdin
  typed?: readonly [afterText: string, text: string]; // stdin stays open
};

/** Runs a program to its end, with an environment of nothing but PATH, a terminal's name and what is given. `typed`: once its stdout shows the first. */
export function runProgram(program: string, args: readonly string[], options: ProgramOptions = {}): Promise<Done> {
  const { env, cwd = root, input = '', typed } = options;
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { cwd, env: { PATH: process.env.PATH, TERM: 'xterm', ...env } });
    const ended: Done = { code: null, stdout: '', stderr: '' };
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

function follow(child: ChildProcess): Running {
  const said = { stdout: '', stderr: '' };
  for (const stream of ['stdout', 'stderr'] as const) {
    child[stream]!.setEncoding('utf8').on('data', (text: string) => {
      said[stream] += text;
    });
  }
  const closed = new Promise<Ended>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code, signal) => resolve({ code, signal }));
  });
  return runningOf({ pid: child.pid!, said, closed, signal: (signal) => void child.kill(signal) });
}

type Observed = Pick<Running, 'pid' | 'signal'> & { said: Pick<Running, 'stdout' | 'stderr'>; closed: Promise<Ended> };

/** Something that runs, seen through what it says and how it ends. */
export function runningOf({ pid, said, closed, signal }: Observed): Running {
  let isOver = false;
  const ended = closed.then((end) => {
    isOver = true;
    return end;
  });
  return {
    pid,
    get stdout() {
      return said.stdout;
    },
    get stderr() {
      return said.stderr;
    },
    get isOver() {
      return isOver;
    },
    ended,
    signal,
  };
}

/** How long a test waits for what has to come: only a fault lasts as long, however slow the machine is. */
const deadlineOfTestsMs = 120_000;

/** Waits until `condition` gives something, and returns it. Throws at the deadline. */
export async function until<T>(
  what: string,
  condition: () => T | Promise<T>,
  deadlineMs = deadlineOfTestsMs,
): Promise<Exclude<Awaited<T>, null | undefined | false | 0 | ''>> {
  const deadline = performance.now() + deadlineMs;
  for (;;) {
    const found = await condition();
    if (found) return found as never;
    if (performance.now() > deadline) throw new Error(`waited ${deadlineMs} ms in vain until ${what}`);
    await sleep(10);
  }
}

/** Watches for `ms` that something does not happen: the one thing that only time can show. */
export async function never(what: string, condition: () => boolean, ms: number): Promise<void> {
  const end = performance.now() + ms;
  while (performance.now() < end) {
    if (condition()) throw new Error(`unexpectedly: ${what}`);
    await sleep(10);
  }
}
