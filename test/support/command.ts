import { EventEmitter } from 'node:events';
import { Readable, Writable } from 'node:stream';
import type { Invocation, SignalSource } from '../../src/commands/command.ts';
import { readCommandLine } from '../../src/commands/line/command-line.ts';
import { executeLine } from '../../src/commands/line/execute.ts';
import { loadConfig } from '../../src/config/read-config.ts';
import type { Summary } from '../../src/ledger/summary.ts';
import { toTypeAnywhere } from '../../src/model/to-type.ts';
import { type Done, type Ended, type Running, runningOf } from './processes.ts';

export type CommandOptions = {
  env?: NodeJS.ProcessEnv;
  input?: string | Buffer; // all of its stdin
  /** Makes stdin and stderr a terminal, on which the second is typed once it shows the first, one pair after the other; a function does something first. */
  typed?: Typed | readonly Typed[];
};

type Deps = Parameters<typeof executeLine>[1];

/**
 * Does a command line in this process, as if it were started with an environment of nothing but the given one: a test sees what a user would
 * see and pays for no process. It can be sent SIGINT, SIGTERM and SIGHUP; what ends a process at once needs a real one.
 */
export function startCommand(args: readonly string[], options: CommandOptions = {}): Running {
  const { deps, said, source, exited } = openDeps(options);
  const closed = Promise.race([executeLine(args, deps), exited]).then((code): Ended => ({ code, signal: null }));
  const running: Running = runningOf({
    pid: process.pid,
    said,
    closed,
    signal: (signal) => {
      if (!source.emit(signal, signal) && !running.isOver)
        throw new Error(`${signal}: nobody listens; start a process instead`);
    },
  });
  return running;
}

/** The same, with what it said when it has ended. */
export async function command(args: readonly string[], options: CommandOptions = {}): Promise<Done> {
  const running = startCommand(args, options);
  const { code } = await running.ended;
  return { code, stdout: running.stdout, stderr: running.stderr };
}

type Invoked = { ended: Promise<number>; printed(): string; told(): string };

/** Runs a command and lets its errors through. `printed`: its stdout so far, `told`: its stderr. */
export function invoke(argv: string[], env: NodeJS.ProcessEnv): Invoked {
  const { deps, said } = openDeps({ env });
  const { command, commandName, args, options, flags, verbosity } = readCommandLine(argv, '', () => {})!;
  const { PATH: _, ...variables } = env;
  const { config, sources } = loadConfig({ flags, env: variables, configFile: undefined });
  const invocation: Invocation = {
    commandName,
    args,
    options,
    config,
    sources,
    argv,
    verbosity,
    toType: toTypeAnywhere,
    ...deps,
  };
  const ended = command.load!().then(({ execute }) => execute(invocation));
  return { ended, printed: () => said.stdout, told: () => said.stderr };
}

type Typed = readonly [afterText: string, text: string | (() => Promise<string>)];

function isList(typed: Typed | readonly Typed[]): typed is readonly Typed[] {
  return Array.isArray(typed[0]);
}

function openDeps({ env = {}, input = '', typed }: CommandOptions) {
  const said = { stdout: '', stderr: '' };
  const source = new EventEmitter();
  let exit: (code: number) => void = () => {};
  const exited = new Promise<number>((resolve) => {
    exit = resolve;
  });
  const stdin = typed ? terminalInput() : Readable.from(input === '' ? [] : [Buffer.from(input)]);
  const toType = typed === undefined ? [] : isList(typed) ? [...typed] : [typed];
  const stderr = collect((text) => {
    said.stderr += text;
    if (toType.length === 0 || !said.stderr.includes(toType[0]![0])) return;
    const [, toSay] = toType.shift()!;
    if (typeof toSay === 'string')
      setImmediate(() => stdin.push(toSay)); // a second prompt listens only then
    else void toSay().then((line) => stdin.push(line));
  });
  const deps: Deps = {
    program: 'expunge',
    env: { PATH: process.env.PATH, TERM: 'xterm', ...env },
    signals: Object.assign(source, { exit }) as unknown as SignalSource,
    stdin: stdin as unknown as NodeJS.ReadStream,
    stdout: collect((text) => {
      said.stdout += text;
    }),
    stderr: typed ? Object.assign(stderr, { isTTY: true as const, columns: 100, rows: 30 }) : stderr,
    outputClosed: new AbortController().signal,
  };
  return { deps, said, source, exited };
}

function terminalInput(): Readable {
  return Object.assign(new Readable({ read() {} }), { isTTY: true, setRawMode: () => {} });
}

function collect(keep: (text: string) => void): NodeJS.WriteStream {
  const decoder = new TextDecoder();
  const write = (chunk: Buffer, _encoding: string, done: () => void) => {
    keep(decoder.decode(chunk, { stream: true }));
    done();
  };
  return new Writable({ write }) as unknown as NodeJS.WriteStream;
}

/** The last line of `--json`. */
export function summaryIn({ stdout, stderr }: { stdout: string; stderr?: string }): Summary {
  if (stdout === '') throw new Error(`no summary: ${stderr}`);
  return JSON.parse(stdout.trimEnd().split('\n').at(-1)!);
}
