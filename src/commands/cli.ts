import { setFlagsFromString } from 'node:v8';
import { loadConfig } from '../config/read-config.ts';
import { ExpungeError, exitCodes, messageOf, systemCode } from '../errors.ts';
import { explainFileError, isFileError } from '../system-errors.ts';
import { plainLine } from '../terminal/style.ts';
import { readVersion } from '../version.ts';
import type { Verb } from './command.ts';
import { type Call, readCommandLine } from './command-line.ts';

// Only what reading a command line and printing help needs is imported here; the code of a verb is loaded when it is asked for.

// Left alone, V8 lets the heap grow to several times of what is in use before it collects, because a lot is allocated in a short
// time. This keeps a run of millions under 200 MB and costs no measurable time.
setFlagsFromString('--heap-growing-percent=50');

const { env, stdin, stdout, stderr } = process;
const outputClosed = new AbortController();

let lostOutput: Error | null = null;

// Whoever read our output may leave before the end (`| head`): no mistake, and no reason to leave a run half done. A full disk is one.
stdout.on('error', (error) => {
  if (systemCode(error) !== 'EPIPE') lostOutput ??= error;
  outputClosed.abort();
});
stderr.on('error', () => {});
process.on('uncaughtException', (error) => end(complain(error)));

await end(await main(process.argv.slice(2)).catch(complain));

async function main(argv: string[]): Promise<number> {
  const call = readCommandLine(argv, readVersion(), (text) => stdout.write(text));
  return call ? execute(call) : 0;
}

async function execute({ command, verb, args, options, flags, configFile, color }: Call): Promise<number> {
  if (!color) forbidColor();
  const { config, sources } = loadConfig({ flags, env, configFile });
  const { execute } = (await command.load!()) as Verb;
  const streams = { stdin, stdout, stderr, outputClosed: outputClosed.signal };
  return execute({ verb, args, options, config, sources, env, ...streams });
}

/** FORCE_COLOR would win over NO_COLOR. */
function forbidColor(): void {
  env.NO_COLOR = '1';
  delete env.FORCE_COLOR;
}

/** Says what went wrong and returns the exit code. An unknown error is a bug: its stack may hold anything, so it is shown on demand. */
function complain(error: unknown): number {
  const known = error instanceof ExpungeError ? error : refusedFile(error);
  const next = known ? known.next : 'run it again with EXPUNGE_LOG_LEVEL=debug to see where, and report it';
  stderr.write(`${known ? 'error' : 'internal error'}: ${plainLine(messageOf(known ?? error))}\n`);
  if (next) stderr.write(next.replace(/^/gm, '  ').concat('\n'));
  if (env.EXPUNGE_LOG_LEVEL === 'debug' && error instanceof Error) stderr.write(`${error.stack}\n`);
  return exitCodes[known?.code ?? 'INTERNAL'].exit;
}

/** A file or folder that nobody expected to be refused: most likely something of the machine, and no bug. */
function refusedFile(error: unknown): ExpungeError | null {
  if (!isFileError(error)) return null;
  return new ExpungeError('INTERNAL', messageOf(error), { cause: error, next: explainFileError(error).next });
}

/** Ends the process though sockets may be open, after everything written has gone out. */
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
