import { setFlagsFromString } from 'node:v8';
import { loadConfig, type Source, type Sources } from '../config/read-config.ts';
import { ExpungeError, exitCodes, messageOf, systemCode } from '../errors.ts';
import { explainFileError, isFileError } from '../system-errors.ts';
import { plainLine } from '../terminal/style.ts';
import { readVersion } from '../version.ts';
import type { Verb } from './command.ts';
import { type Call, readCommandLine } from './command-line.ts';

// Only what reading a command line and printing help needs is imported here; the code of a verb is loaded when it runs.

// By default V8 lets the heap grow to several times the memory in use, because a run allocates much in a short time. This keeps a run
// of millions of ids under 200 MB at no measurable cost.
setFlagsFromString('--heap-growing-percent=50');

const { env, stdin, stdout, stderr } = process;
const outputClosed = new AbortController();

let lostOutput: Error | null = null;
let isVerbose = false;

// The reader of stdout may close it early (`| head`): no error, and a run continues. A full disk is an error.
stdout.on('error', (error) => {
  if (systemCode(error) !== 'EPIPE') lostOutput ??= error;
  outputClosed.abort();
});
stderr.on('error', () => {});
process.on('uncaughtException', (error) => end(complain(error)));

await end(await main(process.argv.slice(2)).catch(complain));

async function main(argv: string[]): Promise<number> {
  if (argv[0] === 'complete') return answerShell(argv.slice(1));
  const call = readCommandLine(argv, readVersion(), (text) => stdout.write(text));
  return call ? execute(call) : 0;
}

/** What a completion script asks for at a TAB. No verb: nobody types it, and it reads a line that is not finished. */
async function answerShell(line: string[]): Promise<number> {
  const { complete } = await import('./complete.ts');
  stdout.write(await complete(line, env));
  return 0;
}

async function execute({ command, verb, args, options, flags, configFile, color, verbosity }: Call): Promise<number> {
  if (!color) forbidColor();
  isVerbose = verbosity === 'verbose';
  const given = command.withoutSettings ? { flags: {}, env: {}, configFile: null } : { flags, env, configFile };
  const { config, sources } = loadConfig(given);
  const { execute } = (await command.load!()) as Verb;
  const streams = { stdin, stdout, stderr, outputClosed: outputClosed.signal };
  const log = isVerbose ? (await import('../logger.ts')).createLogger('debug') : null;
  log?.debug({ verb, version: readVersion(), node: process.version, settings: notDefault(sources) }, 'command started');
  const exit = await execute({ verb, args, options, config, sources, verbosity, env, ...streams });
  log?.debug({ verb, exit, ms: Math.round(performance.now()) }, 'command ended');
  return exit;
}

/** Settings that are not the default, and where they come from; never their values. */
function notDefault(sources: Sources): Record<string, Source> {
  return Object.fromEntries(Object.entries(sources).filter(([, source]) => source !== 'default'));
}

/** FORCE_COLOR would win over NO_COLOR. */
function forbidColor(): void {
  env.NO_COLOR = '1';
  delete env.FORCE_COLOR;
}

/** Prints an error and returns its exit code. An unknown error is a bug; its stack may hold secrets, so only `debug` shows it. */
function complain(error: unknown): number {
  const known = error instanceof ExpungeError ? error : refusedFile(error);
  const next = known ? known.next : 'run it again with --verbose to see where, and report it';
  stderr.write(`${known ? 'error' : 'internal error'}: ${plainLine(messageOf(known ?? error))}\n`);
  if (next) stderr.write(next.replace(/^/gm, '  ').concat('\n'));
  if ((isVerbose || env.EXPUNGE_LOG_LEVEL === 'debug') && error instanceof Error) stderr.write(`${error.stack}\n`);
  return exitCodes[known?.code ?? 'INTERNAL'].exit;
}

/** An error of a file or folder that no code expects: most likely a problem of the machine, and no bug. */
function refusedFile(error: unknown): ExpungeError | null {
  if (!isFileError(error)) return null;
  return new ExpungeError('INTERNAL', messageOf(error), { cause: error, next: explainFileError(error).next });
}

/** Ends the process even if sockets are open, after all output is written. */
async function end(code: number): Promise<void> {
  await flush(stdout);
  const exit = lostOutput && code === 0 ? complain(incomplete(lostOutput)) : code;
  await flush(stderr);
  process.exit(exit);
}

function incomplete(error: Error): ExpungeError {
  return new ExpungeError('INTERNAL', `the output is incomplete: ${messageOf(error)}`, {
    next: explainFileError(error).next,
  });
}

function flush(stream: NodeJS.WriteStream): Promise<void> {
  return new Promise((resolve) => {
    stream.write('', () => resolve());
  });
}
